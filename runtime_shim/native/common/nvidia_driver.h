// The driver that the answers of these libraries were measured on, and whose version they give.
#pragma once

namespace sx {

constexpr char kNvidiaDriver[] = "580.159.04";
constexpr char kNvidiaCuda[] = "13";

}  // namespace sx

// The advertised device, and the choice among an image's codes.
#pragma once
#include "image.h"

namespace sx {

// 90 for 9.0.  Decided at the first call.
int capability();

// The same without deciding: what it would be by now.
int capability_so_far();

// The capability for choosing an entry of the image: the device's, unless SASSXLATE_CC is unset and the image has code
// only for newer devices.
int capability_for(const ImageView &image);

// Whether the image has PTX and no machine code.
bool has_ptx_alone(const ImageView &image);

}  // namespace sx

// Which device is advertised, and which of an image's codes is taken.
#pragma once
#include "image.h"

namespace sx {

// 90 for 9.0.  Decided at the first question.
int capability();

// The one to choose an entry of the image by: the device's, but where SASSXLATE_CC says nothing and the image has code
// for newer devices alone.
int capability_for(const ImageView &image);

}  // namespace sx

// Batches that hold pictures whose pixels take four bytes.
#pragma once

#include "mmkey/hash.h"

#include <span>

namespace mmkey::detail {

/// digest_many where some messages have `pixels` set.
void digest_with_pixels(Algorithm algorithm, std::span<const Message> messages, std::span<Digest> out,
                        unsigned threads);

}  // namespace mmkey::detail

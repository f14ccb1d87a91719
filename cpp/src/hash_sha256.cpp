#include "hash_sha256.h"

#include "hash_dispatch.h"
#include "kernels/constants.h"

#include <algorithm>

namespace mmkey {

using namespace detail;

void Sha256::reset() noexcept {
    std::memcpy(state_, kernel::iv, sizeof state_);
    length_ = 0;
}

void Sha256::update(Bytes data) noexcept {
    if (data.empty()) return;
    const auto stream = dispatch().sha256.stream;
    const std::size_t held = length_ % block_size;
    length_ += data.size();
    if (held != 0) {
        const std::size_t n = std::min(block_size - held, data.size());
        std::memcpy(buffer_ + held, data.data(), n);
        data = data.subspan(n);
        if (held + n < block_size) return;
        stream(state_, buffer_, 1);
    }
    const std::size_t blocks = data.size() / block_size;
    if (blocks != 0) stream(state_, data.data(), blocks);
    data = data.subspan(blocks * block_size);
    if (!data.empty()) std::memcpy(buffer_, data.data(), data.size());
}

Digest Sha256::digest() const noexcept {
    std::uint32_t state[8];
    std::memcpy(state, state_, sizeof state);
    std::uint8_t tail[128];
    const std::size_t held = length_ % block_size;
    std::memcpy(tail, buffer_, held);
    dispatch().sha256.stream(state, tail, pad(tail, held, length_));
    Digest out;
    store_state(state, out.data());
    return out;
}

}  // namespace mmkey

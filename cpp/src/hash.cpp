#include "mmkey/hash.h"

#include "hash_dispatch.h"
#include "hash_sha256.h"
#include "hash_tree.h"
#include "kernels/constants.h"

#include <cstring>

namespace mmkey {

using namespace detail;

std::string_view name(Algorithm algorithm) noexcept { return algorithm == Algorithm::sha256 ? "sha256" : "blake3"; }

namespace {

Digest sha256_digest(Bytes message) {
    const auto stream = dispatch().sha256.stream;
    std::uint32_t state[8];
    std::memcpy(state, kernel::iv, sizeof state);
    const std::size_t blocks = message.size() / 64;
    if (blocks != 0) stream(state, message.data(), blocks);
    std::uint8_t tail[128];
    const std::size_t used = message.size() % 64;
    if (used != 0) std::memcpy(tail, message.data() + 64 * blocks, used);
    stream(state, tail, pad(tail, used, message.size()));
    Digest out;
    store_state(state, out.data());
    return out;
}

}  // namespace

Digest digest(Algorithm algorithm, Bytes message, unsigned threads) {
    return algorithm == Algorithm::sha256 ? sha256_digest(message) : blake3_digest({{}, message}, threads);
}

Hasher::Hasher(Algorithm algorithm) {
    if (algorithm == Algorithm::blake3) state_.emplace<Blake3>();
}

void Hasher::update(Bytes data) {
    std::visit([&](auto& hasher) { hasher.update(data); }, state_);
}

Digest Hasher::digest() const {
    return std::visit([](const auto& hasher) { return hasher.digest(); }, state_);
}

std::vector<KernelChoice> kernels() { return dispatch().choices; }

void selftest() {
    dispatch();
    check_all_kernels();
}

}  // namespace mmkey

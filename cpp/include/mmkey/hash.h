// Digests: SHA-256 (FIPS 180-4) and BLAKE3 (its specification of 2020), each by the fastest kernel that this CPU runs.
//
// Every function gives the same bytes whatever kernel, thread count, chunking or alignment it meets. The kernel of each
// operation is chosen once, when the library is loaded, from one table, widest first; what is chosen has passed a known
// answer first. MMKEY_FORCE_KERNEL=<isa> in the environment forces one for every operation that has it; a name that this
// CPU and build do not run is an error, which `kernels` and `selftest` throw and whatever else comes first does not survive.
#pragma once

#include "mmkey/bytes.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace mmkey {

namespace detail {
struct Node;
}

enum class Algorithm : std::uint8_t { sha256, blake3 };

/// "sha256" or "blake3".
std::string_view name(Algorithm algorithm) noexcept;

/// The digest of one message.
Digest digest(Algorithm algorithm, Bytes message, unsigned threads = 1);

/// A message in two parts, hashed as `head` followed by `body`: a header goes before a large buffer without a copy.
struct Message {
    Bytes head;
    Bytes body;
    bool pixels = false;  ///< `body` is pixels of four bytes, of which the first three are hashed
};

/// One digest a message, side by side in SIMD lanes where that is faster; `out.size() == messages.size()`.
/// `threads` is the most that may work on it; 1 stays on the calling thread.
void digest_many(Algorithm algorithm, std::span<const Message> messages, std::span<Digest> out, unsigned threads = 1);

/// Streaming SHA-256. One object is one message; objects are independent, a single one is not locked.
class Sha256 {
  public:
    static constexpr std::size_t block_size = 64;

    Sha256() noexcept { reset(); }
    void reset() noexcept;
    void update(Bytes data) noexcept;
    /// The digest of all bytes so far; more may follow.
    Digest digest() const noexcept;

  private:
    std::uint32_t state_[8];
    std::uint64_t length_;
    std::uint8_t buffer_[block_size];
};

/// Streaming BLAKE3 in its three modes, with output of any length from any position.
class Blake3 {
  public:
    static constexpr std::size_t block_size = 64;
    static constexpr std::size_t chunk_size = 1024;
    static constexpr std::size_t key_size = 32;

    Blake3() noexcept;
    static Blake3 keyed(std::span<const std::uint8_t, key_size> key) noexcept;
    static Blake3 derive_key(Bytes context) noexcept;

    void reset() noexcept;
    void update(Bytes data, unsigned threads = 1);
    /// Bytes [seek, seek + out.size()) of the output stream; more input may follow. seek + out.size() < 2^64.
    void digest(std::span<std::uint8_t> out, std::uint64_t seek = 0) const noexcept;
    Digest digest() const noexcept;

  private:
    static constexpr std::size_t max_depth = 54;  // 2^54 chunks of 2^10 bytes are 2^64 bytes

    void start_chunk() noexcept;
    void absorb(Bytes data) noexcept;
    detail::Node chunk_node() const noexcept;
    void merge_stack(std::uint64_t chunks) noexcept;
    void push(const std::uint32_t value[8], std::uint64_t chunks_before) noexcept;

    std::uint32_t key_[8];
    std::uint32_t flags_;
    std::uint32_t cv_[8];  // the chunk under way
    std::uint64_t chunk_;  // its number
    std::uint8_t buffer_[block_size];
    std::uint8_t buffered_;
    std::uint8_t blocks_;  // of the chunk under way, compressed
    std::uint8_t depth_;   // of the stack of subtree chaining values
    std::uint32_t stack_[max_depth + 1][8];
};

/// Either of the two, chosen at run time.
class Hasher {
  public:
    explicit Hasher(Algorithm algorithm);
    void update(Bytes data);
    Digest digest() const;

  private:
    std::variant<Sha256, Blake3> state_;
};

/// One operation of one algorithm and the kernel that serves it.
struct KernelChoice {
    Algorithm algorithm;
    std::string_view operation;               ///< "stream", "many", ...
    std::string_view kernel;                  ///< the ISA in use: "shani", "avx512", ..., "portable"
    std::vector<std::string_view> available;  ///< all that this CPU runs, widest first
};

std::vector<KernelChoice> kernels();

/// Known answers for every kernel that this CPU runs; throws std::runtime_error naming the first that fails.
void selftest();

}  // namespace mmkey

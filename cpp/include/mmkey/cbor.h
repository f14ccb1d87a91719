// The canonical encoding: RFC 8949 core deterministic CBOR (section 4.2.1), and RFC 8746 tag 70 for token ids.
//
// Equal values have equal bytes, distinct values have distinct bytes, and no encoding is a proper prefix of another:
// whatever is hashed is one complete encoding, so no two inputs share a message.
#pragma once

#include "mmkey/bytes.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mmkey {

/// The major types of RFC 8949, section 3.1.
enum class Major : std::uint8_t { uint, negative, bytes, text, array, map, tag };

/// The shortest head of a value at `to`, which has room for 9 bytes; returns where it ends.
inline std::uint8_t* write_head(std::uint8_t* to, Major major, std::uint64_t argument) noexcept {
    const auto type = std::uint8_t(std::uint8_t(major) << 5);
    if (argument < 24) {
        *to++ = std::uint8_t(type | argument);
        return to;
    }
    const unsigned log = argument <= 0xff ? 0 : argument <= 0xffff ? 1 : argument <= 0xffffffff ? 2 : 3;
    *to++ = std::uint8_t(type | (24 + log));
    for (unsigned shift = 8u << log; shift != 0;) *to++ = std::uint8_t(argument >> (shift -= 8));
    return to;
}

/// The heads that precede the 4 * count bytes of `count` token ids (tag 70 of RFC 8746, and a byte string's), likewise:
/// `to` has room for 11 bytes.
inline std::uint8_t* write_tokens_head(std::uint8_t* to, std::uint64_t count) noexcept {
    return write_head(write_head(to, Major::tag, /*RFC 8746, little-endian uint32*/ 70), Major::bytes, 4 * count);
}

/// Appends encodings to a buffer that the caller owns. It writes what it is told: that arrays and maps get as many
/// elements as announced, that map keys come sorted and that text is UTF-8 is the caller's part (Value does it).
class CborWriter {
  public:
    explicit CborWriter(std::vector<std::uint8_t>& out) noexcept : out_(out) {}

    void null() { out_.push_back(0xf6); }
    void boolean(bool value) { out_.push_back(value ? 0xf5 : 0xf4); }
    void uint(std::uint64_t value) { head(Major::uint, value); }
    /// The integer -1 - n.
    void negative(std::uint64_t n) { head(Major::negative, n); }
    /// The shortest of half, single and double that keeps the value; every NaN is f9 7e00.
    void real(double value);
    void text(std::string_view utf8);
    void bytes(Bytes data);
    /// The head of a byte string alone; its `size` bytes follow by other means.
    void bytes_head(std::uint64_t size) { head(Major::bytes, size); }
    void array(std::uint64_t size) { head(Major::array, size); }
    void map(std::uint64_t size) { head(Major::map, size); }
    /// Tag 70 over a byte string: little-endian uint32.
    void tokens(std::span<const std::uint32_t> ids);
    /// The heads that precede the 4 * count bytes of `count` token ids.
    void tokens_head(std::uint64_t count);
    /// A complete encoding made elsewhere.
    void encoded(Bytes value) { out_.insert(out_.end(), value.begin(), value.end()); }

  private:
    void head(Major major, std::uint64_t argument);

    std::vector<std::uint8_t>& out_;
};

/// One value, kept as its canonical encoding: what `config`, `processing`, `sampling` and `attrs` are made of.
/// Immutable; two values are equal when their encodings are, so 1, 1.0 and true are three values.
class Value {
  public:
    using Entries = std::vector<std::pair<std::string, Value>>;

    static constexpr unsigned max_depth = 32;  ///< of lists and maps, the outermost being level 1

    Value() : Value(null()) {}
    static Value null();
    static Value boolean(bool value);
    static Value uint(std::uint64_t value);
    /// The integer -1 - n.
    static Value negative(std::uint64_t n);
    static Value real(double value);
    /// Throws InvalidRequest (field `text`) if it is not UTF-8.
    static Value text(std::string_view utf8);
    static Value bytes(Bytes data);
    static Value tokens(std::span<const std::uint32_t> ids);
    /// Both throw InvalidRequest (field `value`) past max_depth, and map where a key appears twice or is not UTF-8.
    static Value array(std::span<const Value> elements);
    static Value map(Entries entries);

    Bytes encoded() const noexcept { return encoded_; }
    bool is_null() const noexcept { return encoded_.size() == 1 && encoded_[0] == 0xf6; }
    /// An integer or float as a double; nothing for any other value.
    std::optional<double> number() const noexcept;
    unsigned depth() const noexcept { return depth_; }

    friend bool operator==(const Value&, const Value&) = default;

  private:
    Value(std::vector<std::uint8_t> encoded, unsigned depth) : encoded_(std::move(encoded)), depth_(depth) {}

    std::vector<std::uint8_t> encoded_;
    unsigned depth_ = 0;
};

/// Whether `text` is well-formed UTF-8 (Unicode 15, table 3-7): no overlong form, no surrogate, nothing past U+10FFFF.
bool is_utf8(std::string_view text) noexcept;

}  // namespace mmkey

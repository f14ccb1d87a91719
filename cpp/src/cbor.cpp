#include "mmkey/cbor.h"

#include "mmkey/error.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace mmkey {

namespace {

template <typename T>
void append_big_endian(std::vector<std::uint8_t>& out, T value) {
    for (int shift = 8 * (int(sizeof value) - 1); shift >= 0; shift -= 8) out.push_back(std::uint8_t(value >> shift));
}

/// The half-precision bits of a single that is exactly a half; nothing if it is not one. NaN never comes here.
std::optional<std::uint16_t> exact_half(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = std::uint16_t(bits >> 16 & 0x8000);
    const std::uint32_t fraction = bits & 0x7fffff;
    const int exponent = int(bits >> 23 & 0xff);
    if (exponent == 0xff) return std::uint16_t(sign | 0x7c00);
    if (exponent == 0 && fraction == 0) return sign;
    const int e = exponent - 127;
    if (e > 15 || e < -24) return {};
    if (e >= -14) {
        if (fraction & 0x1fff) return {};
        return std::uint16_t(sign | unsigned(e + 15) << 10 | fraction >> 13);
    }
    // A subnormal half counts units of 2^-24, the single's significand units of 2^(e-23).
    const std::uint32_t significand = fraction | 0x800000;
    const int dropped = -1 - e;  // 14 <= dropped <= 23
    if (significand & ((1u << dropped) - 1)) return {};
    return std::uint16_t(sign | significand >> dropped);
}

double half_value(std::uint16_t half) noexcept {
    const int exponent = half >> 10 & 0x1f;
    const double fraction = half & 0x3ff;
    double value;
    if (exponent == 0x1f) {
        value = fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    } else {
        value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
    }
    return half & 0x8000 ? -value : value;
}

template <typename Write>
std::vector<std::uint8_t> encode(Write&& write) {
    std::vector<std::uint8_t> out;
    CborWriter writer(out);
    write(writer);
    return out;
}

unsigned deeper(unsigned deepest_element) {
    if (deepest_element >= Value::max_depth)
        throw InvalidRequest("value",
                             "lists and maps nest deeper than " + std::to_string(Value::max_depth) + " levels");
    return deepest_element + 1;
}

void require_utf8(std::string_view text) {
    if (!is_utf8(text)) throw InvalidRequest("text", "is not well-formed UTF-8");
}

}  // namespace

void CborWriter::head(Major major, std::uint64_t argument) {
    std::uint8_t bytes[9];
    out_.insert(out_.end(), bytes, write_head(bytes, major, argument));
}

void CborWriter::real(double value) {
    if (std::isnan(value)) {
        out_.insert(out_.end(), {0xf9, 0x7e, 0x00});
        return;
    }
    const bool in_range = std::isinf(value) || std::abs(value) <= std::numeric_limits<float>::max();
    const float single = in_range ? float(value) : 0.0f;
    if (!in_range || double(single) != value) {
        out_.push_back(0xfb);
        append_big_endian(out_, std::bit_cast<std::uint64_t>(value));
    } else if (const auto half = exact_half(single)) {
        out_.push_back(0xf9);
        append_big_endian(out_, *half);
    } else {
        out_.push_back(0xfa);
        append_big_endian(out_, std::bit_cast<std::uint32_t>(single));
    }
}

void CborWriter::text(std::string_view utf8) {
    head(Major::text, utf8.size());
    encoded(as_bytes(utf8));
}

void CborWriter::bytes(Bytes data) {
    bytes_head(data.size());
    encoded(data);
}

void CborWriter::tokens_head(std::uint64_t count) {
    std::uint8_t bytes[11];
    out_.insert(out_.end(), bytes, write_tokens_head(bytes, count));
}

void CborWriter::tokens(std::span<const std::uint32_t> ids) {
    tokens_head(ids.size());
    encoded({reinterpret_cast<const std::uint8_t*>(ids.data()), ids.size_bytes()});
}

Value Value::null() {
    return {encode([](CborWriter& w) { w.null(); }), 0};
}
Value Value::boolean(bool value) {
    return {encode([=](CborWriter& w) { w.boolean(value); }), 0};
}
Value Value::uint(std::uint64_t value) {
    return {encode([=](CborWriter& w) { w.uint(value); }), 0};
}
Value Value::negative(std::uint64_t n) {
    return {encode([=](CborWriter& w) { w.negative(n); }), 0};
}
Value Value::real(double value) {
    return {encode([=](CborWriter& w) { w.real(value); }), 0};
}
Value Value::text(std::string_view utf8) {
    require_utf8(utf8);
    return {encode([=](CborWriter& w) { w.text(utf8); }), 0};
}
Value Value::bytes(Bytes data) {
    return {encode([=](CborWriter& w) { w.bytes(data); }), 0};
}
Value Value::tokens(std::span<const std::uint32_t> ids) {
    return {encode([=](CborWriter& w) { w.tokens(ids); }), 0};
}

Value Value::array(std::span<const Value> elements) {
    unsigned deepest = 0;
    for (const Value& element : elements) deepest = std::max(deepest, element.depth());
    return {encode([=](CborWriter& w) {
                w.array(elements.size());
                for (const Value& element : elements) w.encoded(element.encoded());
            }),
            deeper(deepest)};
}

Value Value::map(Entries entries) {
    unsigned deepest = 0;
    std::vector<std::pair<std::vector<std::uint8_t>, const Value*>> sorted;
    sorted.reserve(entries.size());
    for (const auto& [key, value] : entries) {
        require_utf8(key);
        sorted.emplace_back(encode([&k = key](CborWriter& w) { w.text(k); }), &value);
        deepest = std::max(deepest, value.depth());
    }
    constexpr auto key_of = [](const auto& entry) -> const auto& { return entry.first; };
    std::ranges::sort(sorted, std::ranges::lexicographical_compare, key_of);
    if (std::ranges::adjacent_find(sorted, {}, key_of) != sorted.end())
        throw InvalidRequest("value", "a map holds one key twice");
    return {encode([&](CborWriter& w) {
                w.map(sorted.size());
                for (const auto& [key, value] : sorted) {
                    w.encoded(key);
                    w.encoded(value->encoded());
                }
            }),
            deeper(deepest)};
}

std::optional<double> Value::number() const noexcept {
    const unsigned major = encoded_[0] >> 5;
    std::uint64_t argument = encoded_[0] & 0x1f;
    if (argument >= 24) {
        argument = 0;
        for (std::size_t i = 1; i < encoded_.size() && i <= 8; ++i) argument = argument << 8 | encoded_[i];
    }
    if (major == 0) return double(argument);
    if (major == 1) return -1.0 - double(argument);
    if (encoded_[0] == 0xf9) return half_value(std::uint16_t(argument));
    if (encoded_[0] == 0xfa) return double(std::bit_cast<float>(std::uint32_t(argument)));
    if (encoded_[0] == 0xfb) return std::bit_cast<double>(argument);
    return {};
}

bool is_utf8(std::string_view text) noexcept {
    const auto* p = reinterpret_cast<const std::uint8_t*>(text.data());
    const auto* const end = p + text.size();
    const auto continues = [&](std::ptrdiff_t n) {
        if (end - p <= n) return false;
        for (std::ptrdiff_t i = 1; i <= n; ++i)
            if ((p[i] & 0xc0) != 0x80) return false;
        return true;
    };
    while (p < end) {
        if (*p < 0x80) {
            p += 1;
        } else if (*p >= 0xc2 && *p <= 0xdf) {
            if (!continues(1)) return false;
            p += 2;
        } else if ((*p & 0xf0) == 0xe0) {
            if (!continues(2)) return false;
            if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f)) return false;
            p += 3;
        } else if (*p >= 0xf0 && *p <= 0xf4) {
            if (!continues(3)) return false;
            if ((*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f)) return false;
            p += 4;
        } else {
            return false;
        }
    }
    return true;
}

}  // namespace mmkey

#include "mmkey/bytes.h"

namespace mmkey {

std::string to_hex(Bytes bytes) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text(2 * bytes.size(), '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    return text;
}

}  // namespace mmkey

#include "mmkey/hash.h"

#include <stdexcept>

namespace mmkey {

void digest_many(Algorithm algorithm, std::span<const Message> messages, std::span<Digest> out, unsigned threads) {
    if (out.size() != messages.size()) throw std::invalid_argument("digest_many: one digest a message");
    for (std::size_t i = 0; i < messages.size(); ++i) {
        if (messages[i].head.empty()) {
            out[i] = digest(algorithm, messages[i].body, threads);
            continue;
        }
        Hasher hasher(algorithm);
        hasher.update(messages[i].head);
        hasher.update(messages[i].body);
        out[i] = hasher.digest();
    }
}

}  // namespace mmkey

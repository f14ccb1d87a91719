#include "mmkey/hash.h"

namespace mmkey {

void digest_chains(Algorithm algorithm, std::span<const Chain> chains) {
    for (const Chain& chain : chains) {
        Digest parent = chain.parent;
        std::size_t at = 0;
        for (std::size_t i = 0; i < chain.sizes.size(); ++i) {
            Hasher hasher(algorithm);
            hasher.update(chain.prefixes.subspan(at, chain.sizes[i]));
            hasher.update(parent);
            at += chain.sizes[i];
            parent = chain.out[i] = hasher.digest();
        }
    }
}

}  // namespace mmkey

// Digests against vectors that hashlib and PyPI blake3 made.
#include "mmkey/hash.h"

#include "vectors.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

using namespace mmkey;

namespace {

std::vector<std::uint8_t> pattern(std::size_t size, std::size_t from = 0) {
    std::vector<std::uint8_t> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>((from + i) % 251);
    return bytes;
}

const nlohmann::json& vectors() {
    static const nlohmann::json json = read_vectors("hash-v1.json");
    return json;
}

Blake3 hasher_of(const std::string& mode) {
    const auto key = vectors()["key"].get<std::string>();
    if (mode == "blake3_keyed") return Blake3::keyed(as_bytes(key).first<32>());
    if (mode == "blake3_derive_key") return Blake3::derive_key(as_bytes(vectors()["context"].get<std::string>()));
    return Blake3();
}

const std::string modes[] = {"blake3", "blake3_keyed", "blake3_derive_key"};

/// Feeds `data` in pieces of random sizes, small and large ones alike.
template <typename Hasher>
void feed(Hasher& hasher, Bytes data, std::mt19937& random) {
    while (!data.empty()) {
        const std::size_t scale = std::size_t{1} << random() % 16;
        const std::size_t n = std::min<std::size_t>(data.size(), random() % scale + 1);
        hasher.update(data.first(n));
        data = data.subspan(n);
    }
}

}  // namespace

TEST_CASE("a one-shot digest is the standard's, wherever the message starts") {
    for (const auto& c : vectors()["cases"]) {
        const std::size_t length = c["length"];
        for (std::size_t shift : {0, 1, 7, 63}) {
            std::vector<std::uint8_t> room(shift + length);
            std::ranges::copy(pattern(length), room.begin() + static_cast<std::ptrdiff_t>(shift));
            const Bytes message = Bytes(room).subspan(shift);
            CHECK(to_hex(digest(Algorithm::sha256, message)) == c["sha256"]);
            CHECK(to_hex(digest(Algorithm::blake3, message)) == c["blake3"].get<std::string>().substr(0, 64));
            CHECK(to_hex(digest(Algorithm::blake3, message, 3)) == c["blake3"].get<std::string>().substr(0, 64));
        }
    }
}

TEST_CASE("a streamed digest does not depend on how the message was split") {
    const unsigned seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    for (const auto& c : vectors()["cases"]) {
        const auto data = pattern(c["length"]);
        for (int round = 0; round < 4; ++round) {
            Sha256 sha256;
            feed(sha256, data, random);
            CHECK(to_hex(sha256.digest()) == c["sha256"]);
            for (const auto& mode : modes) {
                Blake3 blake3 = hasher_of(mode);
                feed(blake3, data, random);
                std::uint8_t out[131];
                blake3.digest(out);
                CHECK(to_hex(out) == c[mode]);
            }
        }
    }
}

TEST_CASE("a digest may be asked for between updates, and a reset starts anew") {
    const auto& cases = vectors()["cases"];
    Sha256 sha256;
    for (const auto& mode : modes) {
        Blake3 blake3 = hasher_of(mode);
        std::size_t fed = 0;
        for (const auto& c : cases) {
            const std::size_t length = c["length"];
            blake3.update(pattern(length - fed, fed));
            if (mode == "blake3") sha256.update(pattern(length - fed, fed));
            fed = length;
            std::uint8_t out[131];
            blake3.digest(out);
            CHECK(to_hex(out) == c[mode]);
            CHECK(to_hex(sha256.digest()) == (mode == "blake3" ? c["sha256"] : cases.back()["sha256"]));
        }
        blake3.reset();
        std::uint8_t out[131];
        blake3.digest(out);
        CHECK(to_hex(out) == cases[0][mode]);
    }
    sha256.reset();
    CHECK(to_hex(sha256.digest()) == cases[0]["sha256"]);
}

TEST_CASE("BLAKE3's output can be read from any position") {
    const auto& c = vectors()["cases"].back();
    Blake3 blake3;
    blake3.update(pattern(c["length"]), 2);
    for (std::size_t seek = 0; seek < 131; ++seek) {
        std::vector<std::uint8_t> out(131 - seek);
        blake3.digest(out, seek);
        CHECK(to_hex(out) == c["blake3"].get<std::string>().substr(2 * seek));
    }
}

TEST_CASE("what is chosen for each operation is available, and the self-test passes") {
    const auto choices = kernels();
    CHECK(choices.size() >= 2);
    for (const auto& choice : choices) {
        CHECK(std::ranges::find(choice.available, choice.kernel) != choice.available.end());
        CHECK(choice.available.back() == "portable");
    }
    CHECK_NOTHROW(selftest());
}

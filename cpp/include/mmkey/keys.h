// The three strategies: what a whole request is known by.
//
//   A  text only: the unsafe baseline       B  text and ordered media contents: the minimal defence
//   C  everything that the KV depends on
#pragma once

#include "mmkey/bytes.h"
#include "mmkey/cbor.h"
#include "mmkey/request.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mmkey {

/// A LoRA adapter.
struct Adapter {
    std::string name;
    std::optional<std::string> revision;
};

/// What the KV of every token depends on besides the request. All text is UTF-8.
struct Scope {
    std::string model_id;  ///< not empty
    std::optional<std::string> revision;
    Value config = Value::map({});  ///< what changes the KV of a text token: rope, kv_dtype, quantization, ...
    std::optional<Adapter> adapter;
    std::optional<std::vector<std::uint8_t>> salt;  ///< not empty; at least 16 secret random bytes keep tenants apart
};

/// Makes keys. Immutable: any number of threads may use one at once.
class KeyEngine {
  public:
    /// Strategies A and B: text, contents and a salt. Throws InvalidRequest (`strategy`, `block_size`, `salt`).
    KeyEngine(Strategy strategy, Algorithm algorithm, std::uint64_t block_size,
              const std::optional<std::vector<std::uint8_t>>& salt);
    /// Strategy C. Throws InvalidRequest (`block_size`, `model_id`, `config`, `adapter`, `salt`, ...).
    KeyEngine(const Scope& scope, Algorithm algorithm, std::uint64_t block_size);

    const ChainSeed& seed() const noexcept { return seed_; }
    /// H(enc(scope)); strategy C only.
    const std::optional<Digest>& scope() const noexcept { return scope_; }

    /// Everything that can be wrong with a request, found before anything is hashed; contents count by kind alone.
    /// `placeholder_ids`: token ids that stand for media and nothing else; one outside every range of the layout was
    /// typed by a user and is an error.
    NormalForm check(const Request& request, std::span<const std::uint32_t> placeholder_ids = {}) const;
    /// The rest of `prepare`, for a request that `check` gave `normal` for.
    Prepared prepare_checked(const Request& request, NormalForm normal) const;
    Prepared prepare(const Request& request, std::span<const std::uint32_t> placeholder_ids = {}) const {
        return prepare_checked(request, check(request, placeholder_ids));
    }

    /// The key of the whole request. Throws InvalidRequest (`request`) if another engine prepared it.
    Digest key(const Prepared& prepared) const;

  private:
    ChainSeed seed_;
    std::optional<std::vector<std::uint8_t>> salt_;  // A and B; C holds it in its scope
    std::optional<Digest> scope_;
};

/// The last 8 bytes of a key, big-endian: for tables and events, never evidence for reuse.
std::uint64_t short_id(const Digest& key) noexcept;

/// `mmkey1:C:request:sha256:<hex>`; level is "request", "block" or "partial".
std::string format_key(const Digest& key, Strategy strategy, Algorithm algorithm, std::string_view level);
/// `mmkey1:content:bytes:sha256:<hex>`, with the content's own algorithm.
std::string format_content(const Content& content);
/// `mmkey1:item:sha256:<hex>` and `mmkey1:scope:sha256:<hex>`; the former is fit to be an engine's media identifier.
std::string format_item(const Digest& item, Algorithm algorithm);
std::string format_scope(const Digest& scope, Algorithm algorithm);

}  // namespace mmkey

#include "mmkey/keys.h"

#include "mmkey/error.h"

#include <algorithm>
#include <utility>

namespace mmkey {

namespace {

using Salt = std::optional<std::vector<std::uint8_t>>;

void check_salt(const Salt& salt) {
    if (salt && salt->empty())
        throw InvalidRequest("salt", "is empty; leave it out, or give at least 16 secret random bytes");
}

void require_text(std::string_view text, const char* field) {
    if (!is_utf8(text)) throw InvalidRequest(field, "is not well-formed UTF-8");
}

void write_salt(CborWriter& out, const Salt& salt) {
    if (salt) {
        out.bytes(*salt);
    } else {
        out.null();
    }
}

void write_text(CborWriter& out, const std::optional<std::string>& text) {
    if (text) {
        out.text(*text);
    } else {
        out.null();
    }
}

Digest scope_digest(const Scope& scope, Algorithm algorithm) {
    if (scope.model_id.empty()) throw InvalidRequest("model_id", "is empty; strategy C needs the model's name");
    require_text(scope.model_id, "model_id");
    if (scope.revision) require_text(*scope.revision, "revision");
    if (scope.config.encoded()[0] >> 5 != 5) throw InvalidRequest("config", "is not a map");
    if (scope.adapter) {
        if (scope.adapter->name.empty()) throw InvalidRequest("adapter", "has an empty name");
        require_text(scope.adapter->name, "adapter");
        if (scope.adapter->revision) require_text(*scope.adapter->revision, "adapter");
    }
    check_salt(scope.salt);
    std::vector<std::uint8_t> message;
    CborWriter writer(message);
    writer.array(6);
    writer.text("mmkey/scope/1");
    writer.text(scope.model_id);
    write_text(writer, scope.revision);
    writer.encoded(scope.config.encoded());
    if (scope.adapter) {
        writer.array(2);
        writer.text(scope.adapter->name);
        write_text(writer, scope.adapter->revision);
    } else {
        writer.null();
    }
    write_salt(writer, scope.salt);
    return digest(algorithm, message);
}

/// `binding` is the scope's digest under C, the salt under A and B.
ChainSeed make_seed(Strategy strategy, Algorithm algorithm, std::uint64_t block_size, const Salt& binding) {
    if (block_size == 0) throw InvalidRequest("block_size", "0 is not a positive integer");
    std::vector<std::uint8_t> message;
    CborWriter writer(message);
    writer.array(4);
    writer.text("mmkey/chain/1");
    const char name = letter(strategy);
    writer.text({&name, 1});
    writer.uint(block_size);
    write_salt(writer, binding);
    return {strategy, algorithm, block_size, digest(algorithm, message)};
}

bool inside(const std::vector<Span>& spans, std::uint64_t position) {
    const auto after = std::ranges::upper_bound(spans, position, {}, &Span::offset);
    return after != spans.begin() && position < std::prev(after)->end();
}

void check_placeholders(const Request& request, const std::vector<Span>& spans,
                        std::span<const std::uint32_t> placeholders) {
    if (placeholders.empty()) return;
    const auto ids = request.token_ids.span();
    const auto is_placeholder = [&](std::uint32_t id) {
        return std::ranges::find(placeholders, id) != placeholders.end();
    };
    for (auto at = std::ranges::find_if(ids, is_placeholder); at != ids.end();
         at = std::find_if(at + 1, ids.end(), is_placeholder)) {
        const auto position = std::uint64_t(at - ids.begin());
        if (!inside(spans, position))
            throw InvalidRequest(
                "token_ids[" + std::to_string(position) + "]",
                std::to_string(*at) +
                    (request.layout
                         ? " is a placeholder id outside every range of the layout"
                         : " is a placeholder id, and no layout says where items stand: give one, or no placeholder_ids"));
    }
}

std::string text_form(std::string_view middle, const Digest& digest) {
    return "mmkey1:" + std::string(middle) + ":" + to_hex(digest);
}

}  // namespace

KeyEngine::KeyEngine(Strategy strategy, Algorithm algorithm, std::uint64_t block_size, const Salt& salt) : salt_(salt) {
    if (strategy == Strategy::C)
        throw InvalidRequest("strategy", "C needs a scope: model, configuration, adapter, salt");
    check_salt(salt);
    seed_ = make_seed(strategy, algorithm, block_size, salt);
}

KeyEngine::KeyEngine(const Scope& scope, Algorithm algorithm, std::uint64_t block_size)
    : scope_(scope_digest(scope, algorithm)) {
    seed_ = make_seed(Strategy::C, algorithm, block_size, to_vector(*scope_));
}

NormalForm KeyEngine::check(const Request& request, std::span<const std::uint32_t> placeholder_ids) const {
    NormalForm normal = mmkey::check(seed_.strategy, request, 0, request.token_ids.size());
    check_placeholders(request, normal.spans, placeholder_ids);
    return normal;
}

Prepared KeyEngine::prepare_checked(const Request& request, NormalForm normal) const {
    Prepared prepared;
    prepared.seed = seed_;
    prepared.token_ids = request.token_ids;
    prepared.identities = identify(seed_, request.items, normal);
    if (seed_.strategy == Strategy::A) {
        if (!request.items.empty())
            prepared.unsafe.push_back(
                "strategy A does not look at the media of a request: two with other media share their keys");
    } else {
        prepared.has_blocks = request.layout.has_value() || request.items.empty();
        prepared.normal = std::move(normal);
    }
    return prepared;
}

Digest KeyEngine::key(const Prepared& prepared) const {
    if (prepared.seed != seed_) throw InvalidRequest("request", "was prepared by another engine");
    std::vector<std::uint8_t> around;
    CborWriter writer(around);
    const bool salted = salt_.has_value();
    const auto& known = prepared.identities;
    const std::string label = std::string("mmkey/") + letter(seed_.strategy) + "/1";

    writer.array(seed_.strategy == Strategy::C ? 6 : (seed_.strategy == Strategy::B ? 3u : 2u) + salted);
    writer.text(label);
    if (scope_) writer.bytes(*scope_);
    writer.tokens_head(prepared.token_ids.size());
    Hasher hasher(seed_.algorithm);
    hasher.update(around);
    hasher.update({reinterpret_cast<const std::uint8_t*>(prepared.token_ids.data()), 4 * prepared.token_ids.size()});

    around.clear();
    if (seed_.strategy == Strategy::B) {
        writer.array(known.contents.size());
        for (const Content& content : known.contents) write(writer, content);
    } else if (seed_.strategy == Strategy::C) {
        writer.array(known.item_digests.size());
        for (const Digest& item : known.item_digests) writer.bytes(item);
        writer.array(prepared.normal.spans.size());
        for (const Span& span : prepared.normal.spans) {
            writer.array(2);
            writer.uint(span.offset);
            writer.uint(span.length);
        }
        writer.array(prepared.normal.spans.size());
        for (const Span& span : prepared.normal.spans) writer.uint(span.item);
    }
    if (salted) writer.bytes(*salt_);
    hasher.update(around);
    return hasher.digest();
}

std::uint64_t short_id(const Digest& key) noexcept {
    std::uint64_t id = 0;
    for (std::size_t i = key.size() - 8; i < key.size(); ++i) id = id << 8 | key[i];
    return id;
}

std::string format_key(const Digest& key, Strategy strategy, Algorithm algorithm, std::string_view level) {
    if (level != "request" && level != "block" && level != "partial")
        throw InvalidRequest("level", "'" + std::string(level) + "' is neither request, block nor partial");
    return text_form(std::string(1, letter(strategy)) + ":" + std::string(level) + ":" + std::string(name(algorithm)),
                     key);
}

std::string format_content(const Content& content) {
    return text_form("content:" + std::string(name(content.kind)) + ":" + std::string(name(content.algorithm)),
                     content.digest);
}

std::string format_item(const Digest& item, Algorithm algorithm) {
    return text_form("item:" + std::string(name(algorithm)), item);
}

std::string format_scope(const Digest& scope, Algorithm algorithm) {
    return text_form("scope:" + std::string(name(algorithm)), scope);
}

}  // namespace mmkey

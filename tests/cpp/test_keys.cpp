#include "mmkey/block_chain.h"
#include "mmkey/error.h"
#include "mmkey/keys.h"

#include "vectors.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

using mmkey::Algorithm;
using mmkey::Bytes;
using mmkey::Digest;
using mmkey::Strategy;
using mmkey::Value;
using nlohmann::json;

namespace {

std::vector<std::uint8_t> unhex(const std::string& text) {
    std::vector<std::uint8_t> bytes;
    for (std::size_t i = 0; i < text.size(); i += 2)
        bytes.push_back(std::uint8_t(std::stoi(text.substr(i, 2), nullptr, 16)));
    return bytes;
}

Value::Entries to_entries(const json& map);

Value to_value(const json& j) {
    if (j.is_null()) return Value::null();
    if (j.is_boolean()) return Value::boolean(j.get<bool>());
    if (j.is_number_unsigned()) return Value::uint(j.get<std::uint64_t>());
    if (j.is_number_integer()) return Value::negative(std::uint64_t(-1 - j.get<std::int64_t>()));
    if (j.is_string()) return Value::text(j.get<std::string>());
    if (j.is_array()) {
        std::vector<Value> elements;
        for (const auto& element : j) elements.push_back(to_value(element));
        return Value::array(elements);
    }
    if (j.contains("$float")) return Value::real(std::stod(j["$float"].get<std::string>()));
    if (j.contains("$bytes")) return Value::bytes(unhex(j["$bytes"].get<std::string>()));
    return Value::map(to_entries(j));
}

Value::Entries to_entries(const json& map) {
    Value::Entries entries;
    for (const auto& [key, value] : map.items()) entries.emplace_back(key, to_value(value));
    return entries;
}

template <typename T>
std::optional<T> optional(const json& map, const char* key) {
    return map.contains(key) && !map[key].is_null() ? std::optional(map[key].get<T>()) : std::nullopt;
}

std::optional<double> rate(const json& map, const char* key) {
    return map.contains(key) ? to_value(map[key]).number() : std::nullopt;
}

Digest array_digest(Algorithm algorithm, const json& item) {
    const auto data = unhex(item["data"]);
    const auto attrs = item.contains("attrs") ? to_value(item["attrs"]) : Value::map({});
    auto message = mmkey::array_head(item["dtype"].get<std::string>(), item["shape"].get<std::vector<std::uint64_t>>(),
                                     attrs, data.size());
    message.insert(message.end(), data.begin(), data.end());
    return mmkey::digest(algorithm, message);
}

mmkey::Content to_content(const json& item, Algorithm engine) {
    const std::string kind = item["kind"];
    if (kind == "bytes") {
        const auto algorithm = item.value("content_algorithm", std::string(name(engine))) == "sha256"
                                   ? Algorithm::sha256
                                   : Algorithm::blake3;
        return {mmkey::ContentKind::bytes, algorithm, mmkey::digest(algorithm, unhex(item["data"]))};
    }
    if (kind == "array") return {mmkey::ContentKind::array, engine, array_digest(engine, item)};
    if (kind == "opaque")
        return {mmkey::ContentKind::opaque, engine,
                mmkey::digest(engine, mmkey::opaque_message(item["identifier"].get<std::string>(),
                                                            item["namespace"].get<std::string>()))};
    std::vector<mmkey::Content> frames;
    for (const std::string frame : item["frames"])
        frames.push_back({mmkey::ContentKind::bytes, engine, mmkey::digest(engine, unhex(frame))});
    return {mmkey::ContentKind::frames, engine, mmkey::digest(engine, mmkey::frames_message(frames))};
}

mmkey::Item to_item(const json& item, Algorithm engine) {
    mmkey::ItemFields fields;
    const std::string modality = item["modality"];
    fields.modality = modality == "image"   ? mmkey::Modality::image
                      : modality == "video" ? mmkey::Modality::video
                                            : mmkey::Modality::audio;
    fields.original_size = optional<std::vector<std::uint64_t>>(item, "original_size");
    fields.resized_size = optional<std::vector<std::uint64_t>>(item, "resized_size");
    fields.patch_grid = optional<std::vector<std::uint64_t>>(item, "patch_grid");
    fields.num_visual_tokens = optional<std::uint64_t>(item, "num_visual_tokens");
    if (item.contains("processing")) fields.processing = to_entries(item["processing"]);
    if (item.contains("sampling")) {
        json given = item["sampling"];
        mmkey::Sampling sampling;
        sampling.frame_indices = given["frame_indices"].get<std::vector<std::uint32_t>>();
        sampling.source_fps = rate(given, "source_fps");
        sampling.sampled_fps = rate(given, "sampled_fps");
        sampling.total_frames = optional<std::uint64_t>(given, "total_frames");
        for (const char* known : {"frame_indices", "source_fps", "sampled_fps", "total_frames"}) given.erase(known);
        sampling.other = to_entries(given);
        fields.sampling = sampling;
    }
    return {to_content(item, engine), std::make_shared<mmkey::ItemMetadata>(fields)};
}

struct Case {
    Algorithm algorithm;
    mmkey::Request request;
    mmkey::Scope scope;
    std::uint64_t block_size;

    explicit Case(const json& given)
        : algorithm(given["algorithm"] == "sha256" ? Algorithm::sha256 : Algorithm::blake3) {
        request.token_ids = mmkey::TokenIds(given["token_ids"].get<std::vector<std::uint32_t>>());
        for (const auto& item : given["items"]) request.items.push_back(to_item(item, algorithm));
        for (const auto& range : given["layout"]) request.layout->push_back({range[0], range[1]});
        request.order = given["order"].get<std::vector<std::uint64_t>>();
        scope.model_id = given["model_id"];
        scope.revision = optional<std::string>(given, "revision");
        scope.config = to_value(given["config"]);
        if (!given["adapter"].is_null()) {
            scope.adapter = mmkey::Adapter{given["adapter"][0], std::nullopt};
            if (!given["adapter"][1].is_null()) scope.adapter->revision = given["adapter"][1];
        }
        if (!given["salt"].is_null()) scope.salt = unhex(given["salt"]);
        block_size = given["block_size"];
    }

    mmkey::KeyEngine engine(Strategy strategy) const {
        if (strategy == Strategy::C) return {scope, algorithm, block_size};
        return {strategy, algorithm, block_size, scope.salt};
    }
};

std::vector<std::string> hexes(std::span<const Digest> keys) {
    std::vector<std::string> texts;
    for (const Digest& key : keys) texts.push_back(mmkey::to_hex(key));
    return texts;
}

std::vector<Digest> block_keys(const mmkey::Prepared& prepared, bool partial) {
    std::vector<Digest> keys(mmkey::block_count(prepared, partial));
    mmkey::block_keys(prepared, keys);
    return keys;
}

}  // namespace

TEST_CASE("every published request has its published keys") {
    const json published = read_vectors("keys-v1.json");
    for (const auto& entry : published["cases"]) {
        const Case given(entry["request"]);
        const json& expect = entry["expect"];
        for (const Strategy strategy : {Strategy::A, Strategy::B, Strategy::C}) {
            const auto engine = given.engine(strategy);
            const auto prepared = engine.prepare(given.request);
            const std::string letter(1, mmkey::letter(strategy));
            CHECK(mmkey::to_hex(engine.key(prepared)) == expect[letter].get<std::string>());
            CHECK(hexes(block_keys(prepared, true)) ==
                  expect["blocks_partial"][letter].get<std::vector<std::string>>());
            CHECK(prepared.unsafe.empty() == (strategy != Strategy::A || given.request.items.empty()));
            if (strategy == Strategy::C)
                CHECK(mmkey::to_hex(*engine.scope()) == expect["scope_digest"].get<std::string>());
        }
    }
}

TEST_CASE("a chain fed in pieces has the published keys, its items declared at their first token") {
    std::mt19937 random(20261130);
    const json published = read_vectors("keys-v1.json");
    for (const auto& entry : published["cases"]) {
        const Case given(entry["request"]);
        const auto engine = given.engine(Strategy::C);
        const auto expected = entry["expect"]["blocks_partial"]["C"].get<std::vector<std::string>>();
        mmkey::BlockChain chain(engine.seed());
        mmkey::Request first = given.request;
        const auto ids = given.request.token_ids.span();
        std::size_t fed = std::min<std::size_t>(random() % 5, ids.size());
        first.token_ids = mmkey::TokenIds(ids.first(fed));
        chain.extend(first);
        while (fed < ids.size()) {
            const std::size_t size = std::min<std::size_t>(1 + random() % 70, ids.size() - fed);
            mmkey::Request more;
            more.token_ids = mmkey::TokenIds(ids.subspan(fed, size));
            chain.extend(more);
            fed += size;
        }
        const auto full = ids.size() / given.block_size;
        CHECK(chain.size() == ids.size());
        CHECK(hexes(chain.keys()) == std::vector(expected.begin(), expected.begin() + std::ptrdiff_t(full)));
    }
}

TEST_CASE("a chain refuses what overlaps an earlier declaration, and stays as it was") {
    const mmkey::KeyEngine engine(Strategy::B, Algorithm::sha256, 4, {});
    const auto picture = [](std::uint8_t byte) {
        return mmkey::Item{{mmkey::ContentKind::bytes, Algorithm::sha256, Digest{byte}},
                           std::make_shared<mmkey::ItemMetadata>(mmkey::ItemFields{})};
    };
    mmkey::BlockChain chain(engine.seed());
    mmkey::Request first;
    first.token_ids = mmkey::TokenIds(std::vector<std::uint32_t>{1, 2, 3, 4, 5});
    first.items = {picture(1)};
    first.layout = {{2, 6}};
    CHECK(chain.extend(first) == 1);
    mmkey::Request second;
    second.token_ids = mmkey::TokenIds(std::vector<std::uint32_t>{6});
    second.items = {picture(2)};
    for (const mmkey::Range range : {mmkey::Range{7, 2}, mmkey::Range{3, 1}, mmkey::Range{5, 1}}) {
        second.layout = {range};
        CHECK_THROWS_AS(chain.extend(second), mmkey::InvalidRequest);
        CHECK(chain.size() == 5);
    }
    second.layout = {{8, 1}};
    CHECK(chain.extend(second) == 0);
    CHECK(chain.size() == 6);
}

TEST_CASE("an engine refuses a request that another one prepared") {
    const mmkey::KeyEngine engine(Strategy::A, Algorithm::sha256, 16, {});
    const mmkey::KeyEngine salted(Strategy::A, Algorithm::sha256, 16, std::vector<std::uint8_t>{1});
    mmkey::Request request;
    request.token_ids = mmkey::TokenIds(std::vector<std::uint32_t>{1, 2, 3});
    CHECK_THROWS_AS(salted.key(engine.prepare(request)), mmkey::InvalidRequest);
}

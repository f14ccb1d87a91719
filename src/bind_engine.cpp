// Engines: a request is checked first, then its contents are hashed, then it is prepared; keys come from what is prepared.
#include "integers.h"
#include "mmkey/block_chain.h"
#include "mmkey/keys.h"
#include "names.h"
#include "request_data.h"
#include "values.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace py = pybind11;
using mmkey::BlockChain;
using mmkey::Digest;
using mmkey::KeyEngine;
using mmkey::Prepared;

namespace {

constexpr std::size_t long_work = 4096;  // tokens; below it giving up the GIL costs more than it gives

/// A request that passed its checks and waits for its contents.
struct Checked {
    mmkey::Request request;
    mmkey::NormalForm normal;
};

/// A chain of its own lock, since Python threads may share it.
struct Chain {
    explicit Chain(const mmkey::ChainSeed& seed) : chain(seed) {}
    BlockChain chain;
    std::mutex mutex;
};

template <typename Work>
auto without_gil(std::size_t tokens, Work&& work) {
    if (tokens < long_work) return work();
    const py::gil_scoped_release release;
    return work();
}

py::array_t<std::uint8_t> to_array(std::span<const Digest> keys) {
    py::array_t<std::uint8_t> out({py::ssize_t(keys.size()), py::ssize_t(sizeof(Digest))});
    if (!keys.empty()) std::memcpy(out.mutable_data(), keys.data(), keys.size_bytes());
    return out;
}

py::bytes to_bytes(const Digest& digest) { return {reinterpret_cast<const char*>(digest.data()), digest.size()}; }

/// The request of `data` with items of `metadata`, whose contents are known by their kind alone so far.
mmkey::Request request_of(const RequestData& data, const py::tuple& metadata, const py::tuple& kinds) {
    mmkey::Request request{data.token_ids, {}, data.layout, data.order};
    request.items.reserve(metadata.size());
    for (std::size_t i = 0; i < metadata.size(); ++i)
        request.items.push_back({{names::content_kind(kinds[i]), {}, {}},
                                 py::object(metadata[i]).cast<std::shared_ptr<mmkey::ItemMetadata>>()});
    return request;
}

void fill(Checked& checked, const py::tuple& contents) {
    for (std::size_t i = 0; i < contents.size(); ++i)
        checked.request.items.at(i).content = py::object(contents[i]).cast<const mmkey::Content&>();
}

KeyEngine make_engine(const py::object& strategy, const py::object& algorithm, const py::object& block_size,
                      const py::object& model_id, const py::object& config, const py::object& revision,
                      const py::object& adapter, const py::object& adapter_revision, const py::object& salt) {
    const auto chosen = names::strategy(strategy);
    const auto hash = names::algorithm(algorithm);
    const std::uint64_t size = to_uint(block_size, "block_size");
    const auto optional_text = [](const py::object& text, const char* field) {
        return text.is_none() ? std::nullopt : std::optional(to_text(text, field));
    };
    mmkey::Scope scope;
    if (!model_id.is_none()) scope.model_id = to_text(model_id, "model_id");
    scope.revision = optional_text(revision, "revision");
    scope.config = to_map(config, "config");
    if (!adapter.is_none()) scope.adapter = {to_text(adapter, "adapter"), optional_text(adapter_revision, "adapter")};
    scope.salt = to_salt(salt);
    if (chosen != mmkey::Strategy::C) return {chosen, hash, size, scope.salt};
    if (model_id.is_none()) throw mmkey::InvalidRequest("model_id", "is None; strategy C needs the model's name");
    if (config.is_none())
        throw mmkey::InvalidRequest("config", "is None; strategy C needs a map, which may be empty: {}");
    return {scope, hash, size};
}

std::vector<py::array_t<std::uint8_t>> block_keys(const KeyEngine& engine, std::span<const Prepared* const> requests,
                                                  bool partial) {
    std::vector<py::array_t<std::uint8_t>> arrays;
    std::vector<mmkey::BlockKeys> wanted;
    std::size_t tokens = 0;
    for (const Prepared* prepared : requests) {
        if (prepared->seed != engine.seed()) throw mmkey::InvalidRequest("request", "was prepared by another engine");
        const auto count = mmkey::block_count(*prepared, partial);
        auto& keys = arrays.emplace_back(std::vector{py::ssize_t(count), py::ssize_t(sizeof(Digest))});
        wanted.push_back({prepared, {reinterpret_cast<Digest*>(keys.mutable_data()), count}});
        tokens += prepared->token_ids.size();
    }
    without_gil(tokens, [&] { mmkey::block_keys_many(wanted); });
    return arrays;
}

/// Extends under the chain's lock, which is never held by a thread that waits for the GIL.
template <typename Extend>
py::array_t<std::uint8_t> extend(Chain& self, std::size_t tokens, Extend&& extend) {
    const auto fresh = without_gil(tokens, [&] {
        const std::lock_guard lock(self.mutex);
        const std::size_t count = extend(self.chain);
        const auto keys = self.chain.keys().last(count);
        return std::vector<Digest>(keys.begin(), keys.end());
    });
    return to_array(fresh);
}

py::tuple item_texts(const Prepared& prepared) {
    const auto& digests = prepared.identities.item_digests;
    py::tuple texts(digests.size());
    for (std::size_t n = 0; n < digests.size(); ++n)
        texts[prepared.normal.appearance[n]] = mmkey::format_item(digests[n], prepared.seed.algorithm);
    return texts;
}

std::string repr(const Prepared& p) {
    return std::string("<mmkey.Prepared ") + mmkey::letter(p.seed.strategy) + " " +
           std::string(mmkey::name(p.seed.algorithm)) + ": " + std::to_string(p.token_ids.size()) + " tokens, " +
           std::to_string(p.full_blocks()) + " blocks of " + std::to_string(p.seed.block_size) +
           (p.unsafe.empty() ? ">" : ", unsafe>");
}

void bind_chain(py::module_& m) {
    py::class_<Chain>(m, "Chain")
        .def(
            "check",
            [](Chain& self, const RequestData& data, const py::tuple& metadata, const py::tuple& kinds) {
                Checked checked{request_of(data, metadata, kinds), {}};
                const std::lock_guard lock(self.mutex);
                checked.normal = self.chain.check(checked.request);
                return checked;
            },
            py::arg("request"), py::arg("metadata"), py::arg("kinds"))
        .def(
            "extend",
            [](Chain& self, Checked& checked, const py::tuple& contents) {
                fill(checked, contents);
                // Checked once more: another thread may have extended the chain since.
                return extend(self, checked.request.token_ids.size(),
                              [&](BlockChain& chain) { return chain.extend(checked.request); });
            },
            py::arg("checked"), py::arg("contents"))
        .def(
            "extend_prepared",
            [](Chain& self, const Prepared& prepared) {
                return extend(self, prepared.token_ids.size(),
                              [&](BlockChain& chain) { return chain.append(prepared); });
            },
            py::arg("prepared"))
        .def_property_readonly("keys",
                               [](Chain& self) {
                                   const std::lock_guard lock(self.mutex);
                                   return to_array(self.chain.keys());
                               })
        .def("__len__", [](Chain& self) {
            const std::lock_guard lock(self.mutex);
            return self.chain.size();
        });
}

}  // namespace

void bind_engine(py::module_& m) {
    py::class_<Checked>(m, "Checked");
    auto prepared = py::class_<Prepared, std::shared_ptr<Prepared>>(
        m, "Prepared",
        "A request validated, in normal form and with its media hashed: what keys and the prefix index are asked with.\n\n"
        "Made by KeyEngine.prepare; immutable, holds no media.");
    prepared.attr("__module__") = "mmkey";
    prepared
        .def_property_readonly(
            "unsafe", [](const Prepared& p) { return py::tuple(py::cast(p.unsafe)); },
            "Why a hit on its keys may be false: a tuple of reasons, empty when none is known.")
        .def_property_readonly("item_texts", &item_texts,
                               "mmkey1:item:... of each item in the caller's order: a tuple, empty but for strategy C.")
        .def("__repr__", &repr)
        .def_property_readonly("strategy",
                               [](const Prepared& p) { return std::string(1, mmkey::letter(p.seed.strategy)); })
        .def_property_readonly("algorithm",
                               [](const Prepared& p) { return names::text(mmkey::name(p.seed.algorithm)); })
        .def_property_readonly("block_size", [](const Prepared& p) { return p.seed.block_size; })
        .def_property_readonly("num_tokens", [](const Prepared& p) { return p.token_ids.size(); })
        .def_property_readonly("root", [](const Prepared& p) { return to_bytes(p.seed.root); });
    py::class_<KeyEngine>(m, "Engine")
        .def(py::init(&make_engine), py::arg("strategy"), py::arg("algorithm"), py::arg("block_size"),
             py::arg("model_id"), py::arg("config"), py::arg("revision"), py::arg("adapter"),
             py::arg("adapter_revision"), py::arg("salt"))
        .def_property_readonly("root", [](const KeyEngine& e) { return to_bytes(e.seed().root); })
        .def_property_readonly(
            "scope",
            [](const KeyEngine& e) -> py::object { return e.scope() ? py::object(to_bytes(*e.scope())) : py::none(); })
        .def(
            "check",
            [](const KeyEngine& self, const RequestData& data, const py::tuple& metadata, const py::tuple& kinds,
               const py::object& placeholder_ids) {
                const auto placeholders = to_token_ids(placeholder_ids, "placeholder_ids");
                Checked checked{request_of(data, metadata, kinds), {}};
                checked.normal = self.check(checked.request, placeholders);
                return checked;
            },
            py::arg("request"), py::arg("metadata"), py::arg("kinds"), py::arg("placeholder_ids"))
        .def(
            "prepare",
            [](const KeyEngine& self, Checked& checked, const py::tuple& contents) {
                fill(checked, contents);
                return std::make_shared<Prepared>(self.prepare_checked(checked.request, std::move(checked.normal)));
            },
            py::arg("checked"), py::arg("contents"))
        .def(
            "key",
            [](const KeyEngine& self, const Prepared& prepared) {
                return to_bytes(without_gil(prepared.token_ids.size(), [&] { return self.key(prepared); }));
            },
            py::arg("prepared"))
        .def(
            "block_keys",
            [](const KeyEngine& self, const Prepared& prepared, bool partial) {
                const Prepared* const one = &prepared;
                return block_keys(self, {&one, 1}, partial).front();
            },
            py::arg("prepared"), py::arg("partial"))
        .def(
            "block_keys_many",
            [](const KeyEngine& self, const py::list& prepared, bool partial) {
                std::vector<const Prepared*> requests;
                for (const py::handle one : prepared) requests.push_back(&one.cast<const Prepared&>());
                return block_keys(self, requests, partial);
            },
            py::arg("prepared"), py::arg("partial"))
        .def("chain", [](const KeyEngine& self) { return std::make_unique<Chain>(self.seed()); });
    bind_chain(m);
    m.def(
        "format_key",
        [](const py::bytes& key, const py::object& strategy, const py::object& algorithm, const py::object& level) {
            Digest digest;
            std::memcpy(digest.data(), PyBytes_AS_STRING(key.ptr()), digest.size());
            return mmkey::format_key(digest, names::strategy(strategy), names::algorithm(algorithm),
                                     to_text(level, "level"));
        },
        py::arg("key"), py::arg("strategy"), py::arg("algorithm"), py::arg("level"));
}

// Block chains that grow.
#include "checked.h"
#include "fork_lock.h"
#include "mmkey/block_chain.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace py = pybind11;
using mmkey::BlockChain;
using mmkey::Digest;
using mmkey::Prepared;
using mmkey::python::ForkGuard;

namespace {

/// A chain of its own lock, since Python threads may share it.
struct Chain {
    explicit Chain(const mmkey::ChainSeed& seed) : chain(seed) {}
    BlockChain chain;
    mmkey::python::ForkLock lock;
};

py::array_t<std::uint8_t> to_array(std::span<const Digest> keys) {
    py::array_t<std::uint8_t> out({py::ssize_t(keys.size()), py::ssize_t(sizeof(Digest))});
    if (!keys.empty()) std::memcpy(out.mutable_data(), keys.data(), keys.size_bytes());
    return out;
}

/// Extends under the chain's lock, which is never held by a thread that waits for the GIL.
template <typename Extend>
py::array_t<std::uint8_t> extend(Chain& self, std::size_t tokens, Extend&& extend) {
    const auto fresh = without_gil(tokens, [&] {
        const ForkGuard guard(self.lock, "chain");
        const std::size_t count = extend(self.chain);
        const auto keys = self.chain.keys().last(count);
        return std::vector<Digest>(keys.begin(), keys.end());
    });
    return to_array(fresh);
}

std::unique_ptr<Chain> copy(Chain& self) {
    auto other = std::make_unique<Chain>(self.chain.seed());
    const ForkGuard guard(self.lock, "chain");
    other->chain = self.chain;
    return other;
}

}  // namespace

void bind_chain(py::module_& m) {
    py::class_<Chain>(m, "Chain")
        .def(py::init<const mmkey::ChainSeed&>(), py::arg("seed"))
        .def(
            "check",
            [](Chain& self, const RequestData& data, const py::tuple& metadata, const py::tuple& kinds) {
                Checked checked{request_of(data, metadata, kinds), {}};
                const ForkGuard guard(self.lock, "chain");
                checked.normal = self.chain.check(checked.request);
                return checked;
            },
            py::arg("request"), py::arg("metadata"), py::arg("kinds"))
        .def(
            "extend",
            [](Chain& self, Checked& checked, const py::tuple& contents) {
                fill(checked, self.chain.seed().strategy, contents);
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
        .def("copy", &copy)
        .def_property_readonly("keys",
                               [](Chain& self) {
                                   const ForkGuard guard(self.lock, "chain");
                                   return to_array(self.chain.keys());
                               })
        .def("__len__", [](Chain& self) {
            const ForkGuard guard(self.lock, "chain");
            return self.chain.size();
        });
}

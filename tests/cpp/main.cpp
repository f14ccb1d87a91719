// All tests; then those of digests once more for each kernel that this CPU runs.
#define DOCTEST_CONFIG_IMPLEMENT
#include "hash_dispatch.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <set>
#include <string>

int main(int argc, char** argv) {
    doctest::Context all(argc, argv);
    int failed = all.run();
    if (all.shouldExit()) return failed;
    std::set<std::string> isas;
    for (const auto& choice : mmkey::kernels()) isas.insert(choice.available.begin(), choice.available.end());
    const auto* usual = mmkey::detail::chosen.load();
    for (const auto& isa : isas) {
        const auto table = mmkey::detail::select_kernels(isa);
        mmkey::detail::chosen = &table;
        std::printf("kernels of %s:\n", isa.c_str());
        doctest::Context digests(argc, argv);
        digests.setOption("source-file", "*test_hash*,*test_block_chain*");
        failed |= digests.run();
        mmkey::detail::chosen = usual;
    }
    return failed;
}

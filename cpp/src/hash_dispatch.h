// Which kernel serves which operation on this CPU.
#pragma once

#include "mmkey/hash.h"

#include "kernels/kernels.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <span>
#include <string_view>

namespace mmkey::detail {

/// A kernel of `width` lanes, and from how many busy lanes on it beats the next narrower row.
template <typename Kernel>
struct Lanes {
    std::size_t width = 0;
    std::size_t from = 0;
    Kernel* run = nullptr;
};

template <typename Kernel>
using LaneRows = std::array<Lanes<Kernel>, 3>;  // widest first; the rest stays empty

template <typename Kernel>
std::size_t widest(const LaneRows<Kernel>& rows) noexcept {
    return rows[0].run ? rows[0].width : 1;
}

/// The row that serves `busy` lanes best, or nullptr where one at a time is better.
template <typename Kernel>
const Lanes<Kernel>* pick(const LaneRows<Kernel>& rows, std::size_t busy) noexcept {
    for (const auto& row : rows)
        if (row.run && busy >= row.from) return &row;
    return nullptr;
}

struct Sha256Kernels {
    kernel::Sha256Stream* stream;
    LaneRows<kernel::ChainLinks> chains;  // lanes are chains; without a row, link by link
    LaneRows<kernel::Sha256Lanes> lanes;
    kernel::Sha256Digests* digests;  // of the widest row, or nullptr
    kernel::ChainAhead* ahead;       // or nullptr
};

/// What serves many messages.
struct Sha256Many {
    LaneRows<kernel::Sha256Lanes> lanes;
    kernel::Sha256Digests* digests = nullptr;
    kernel::ChainAhead* ahead = nullptr;
};

/// What serves one message after the other.
struct Sha256Serial {
    kernel::Sha256Stream* stream;
    LaneRows<kernel::ChainLinks> chains;
};

struct Blake3Kernels {
    kernel::Blake3Compress* compress;
    kernel::Blake3Stream* stream;
    kernel::Blake3Output* output;
    LaneRows<kernel::ChainLinks> chains;
    LaneRows<kernel::Blake3Lanes> lanes;
    kernel::ChainAhead* ahead = nullptr;
};

struct Dispatch {
    Sha256Kernels sha256;
    Blake3Kernels blake3;
    kernel::PackPixels* pack_pixels;
    std::vector<KernelChoice> choices;
};

/// The table with the kernels of one ISA wherever it has them, or by default (""), each past its known answers. Throws
/// std::runtime_error where an answer is wrong, or the ISA is none that this CPU and build run.
Dispatch select_kernels(std::string_view isa);

/// Null until the table is filled; tests alone change it afterwards.
extern std::atomic<const Dispatch*> chosen;

/// Fills the table, once, as MMKEY_FORCE_KERNEL says.
const Dispatch& choose_kernels();

/// The table in use. The first call throws std::runtime_error where MMKEY_FORCE_KERNEL names what this CPU or build lacks,
/// or an answer is wrong.
inline const Dispatch& dispatch() {
    const Dispatch* table = chosen.load(std::memory_order_acquire);
    return table ? *table : choose_kernels();
}

/// Known answers for every kernel that this CPU runs, chosen or not.
void check_all_kernels();

}  // namespace mmkey::detail

// Reading mapped weights ahead: a file that is not in the page cache is read once, in order, instead of in the
// order in which the first step happens to fault on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "checkpoint/checkpoint.h"

namespace tessera {

// Called now and then with bytes read and bytes in all.
using PageInProgress = std::function<void(uint64_t done, uint64_t total)>;

// Reads the files of a checkpoint, as far as they are not in memory now; `progress` is not called when all of it
// is.
void page_in(const Checkpoint& checkpoint, const PageInProgress& progress);

}  // namespace tessera

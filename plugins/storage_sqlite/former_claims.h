// The claims of a life of the node that has ended (`jobq/node_store.h`).
#pragma once

#include "writes/step.h"

namespace jobq::sqlite {

/// Marks all claims as lost. Leases::sweep() returns their jobs to the queue and counts the losses. Called in the step
/// that ends a life. Throws StorageError.
void loseFormerClaims(Step& step);

}  // namespace jobq::sqlite

// What knows no field: sorting and scans.
#include "modules.cuh"

SORT_KERNELS

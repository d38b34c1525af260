"""The results of each step of a program, computed plainly by NumPy."""

import reference_gemm
import reference_map
import reference_moves
import reference_order
import reference_reduce
import reference_scan

FUNCTIONS = {kind: reference_moves.results for kind in reference_moves.FUNCTIONS} | {
    "gemm": reference_gemm.gemm, "reduce": reference_reduce.reduce, "scan": reference_scan.scan,
    "sort": reference_order.sort, "argsort": reference_order.sort, "topk": reference_order.sort,
    "searchsorted": reference_order.searchsorted, "map": reference_map.map_, "cast": reference_map.cast_step,
    "add": reference_map.add_step, "scale": reference_map.scale_step}


def results(step, values):
    """The values of the results of a step: its own, and then the further ones."""
    return FUNCTIONS[step.kind](step, values)

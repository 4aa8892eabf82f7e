# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from rtproof.compare.change_points import mean_changes, visible_step


@pytest.mark.parametrize("runs", [20, 40, 80, 150])
def test_a_step_of_that_size_is_found_about_nine_times_of_ten(runs: int) -> None:
    generator = np.random.default_rng(runs)
    found = 0
    for _ in range(200):
        series = generator.standard_normal(runs)
        series[runs // 2 :] += visible_step(runs)
        found += bool(mean_changes(list(series)))
    assert 0.82 <= found / 200 <= 0.98, "200 histories have a standard error of 0.02"


def test_more_runs_show_smaller_steps_up_to_what_a_window_holds() -> None:
    steps = [visible_step(runs) for runs in (20, 30, 50, 80, 200)]
    assert steps == sorted(steps, reverse=True)
    assert steps[-1] == steps[-2]

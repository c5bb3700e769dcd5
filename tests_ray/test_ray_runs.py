"""Runs of a comparison as tasks of a Ray cluster: the same rows as in processes."""

import pytest
import ray

import gosprl
from gosprl.experiments import workers


@pytest.fixture(scope="module")
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


def test_a_comparison_is_the_same(cluster):
    rows = [gosprl.compare("riverswim6", ["guarded", "random"], need=2, runs=3, workers=w).rows for w in (1, "ray")]
    assert rows[0] == rows[1]


def dies(job):
    import os

    os._exit(1)


class Job:
    def tiny(self):
        return None


def test_a_run_that_ends_its_process_is_said_to(cluster):
    with workers.team_of("ray", dies) as team:
        ((_, why),) = team.each([("one", Job())])
    assert why.startswith(workers.DIED)

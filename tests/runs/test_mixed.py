"""Directories whose files are of different moments, as a backup or an interrupted copy leaves them."""

import random
import shutil

import pytest
from kinds import Episodes, Maze

import gosprl
from gosprl.runs import Out, repair, resume, verify

SYNC = {"sync_steps": 15, "sync_seconds": 100.0}


class Life:
    """A run that stops and goes on; each of `stages` is a call that begins it or goes on with it."""

    def __init__(self, *stages, given=None):
        self.stages, self.given = stages, given or {}

    def things(self):
        """What has to be given again."""
        return {name: value() if name == "system" else value for name, value in self.given.items()}

    def snapshots(self, folder):
        """A copy of the directory after each call."""
        run, made = folder / "run", []
        for i, stage in enumerate(self.stages):
            stage(run)
            shutil.copytree(run, folder / f"moment{i}")
            made.append(folder / f"moment{i}")
        return made


def begun(make, need, steps, **options):
    def stage(run):
        gosprl.collect(make(), need, seed=0, max_steps=steps, out=Out(run, **SYNC), **options)

    return stage


def gone_on(steps=None, **options):
    def stage(run):
        made = {name: value() if name == "system" else value for name, value in options.items()}
        resume(run, max_steps=steps, **made, **SYNC)

    return stage


def with_data(run):
    mdp = gosprl.envs.make("riverswim6")
    earlier = gosprl.collect(mdp, 2, seed=5).model
    gosprl.collect(mdp, 9, seed=0, data=earlier, data_order="collected", max_steps=40, out=Out(run, **SYNC))


def episodes():
    return Episodes(river())


def river():
    return gosprl.envs.make("riverswim6")


LIVES = {
    "table": Life(begun(river, 9, 40), gone_on(90), gone_on(130), gone_on(), gone_on(need=14)),
    "data": Life(with_data, gone_on(60), gone_on(), gone_on(need=14)),
    "episodes": Life(
        begun(episodes, 6, 30),
        gone_on(70, system=episodes),
        gone_on(system=episodes),
        gone_on(system=episodes, need=12),
        given={"system": episodes},
    ),
    "growing": Life(
        begun(lambda: Maze(masks=True, contexts=2, ends=True), 2, 30, actions=4),
        gone_on(60, system=lambda: Maze(masks=True, contexts=2, ends=True)),
        gone_on(system=lambda: Maze(masks=True, contexts=2, ends=True)),
        gone_on(system=lambda: Maze(masks=True, contexts=2, ends=True), need=4),
        given={"system": lambda: Maze(masks=True, contexts=2, ends=True)},
    ),
    "fleet": Life(
        begun(river, 5, 30, workers="threads:2"),
        gone_on(70, workers="threads:2"),
        gone_on(workers="threads:2"),
        gone_on(need=9, workers="threads:2"),
        given={"workers": "threads:2"},
    ),
}
PARTS = ("manifest.json", "log/chain", "log/0", "states.arrow", "certificate.json", "checkpoint/0", "checkpoint/system")


def files_of(directory, part):
    names = (path.relative_to(directory).as_posix() for path in sorted(directory.rglob("*")) if path.is_file())
    return [name for name in names if name.startswith(part)]


def mixed(moments, chosen, target):
    """A directory with each part as it was at the chosen moment; what is in no part as it was at the first."""
    shutil.copytree(moments[0], target)
    for part, moment in zip(PARTS, chosen, strict=True):
        for name in files_of(target, part):
            (target / name).unlink()
        for name in files_of(moments[moment], part):
            (target / name).parent.mkdir(exist_ok=True)
            shutil.copy2(moments[moment] / name, target / name)


def refusal(call):
    """The error of a call, None if it does its work."""
    try:
        call()
    except gosprl.InputError as error:
        return str(error)
    return None


def contents(directory):
    return {
        path.relative_to(directory).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def choices(moments, number, seed):
    """Moments of the parts: each part alone of another moment than the others, and drawn ones."""
    draw, n = random.Random(seed), len(PARTS)
    for before in range(moments - 1):
        yield from ([before + (i == part) for i in range(n)] for part in range(n))  # one part is newer
    for _ in range(number):
        yield [draw.randrange(moments) for _ in range(n)]


@pytest.mark.filterwarnings("ignore:.*cannot be followed exactly")
@pytest.mark.parametrize("name", LIVES)
def test_files_of_different_moments_are_refused_untouched_or_go_on_and_are_confirmed(name, tmp_path):
    life = LIVES[name]
    moments = life.snapshots(tmp_path)
    outcomes = {"refused": 0, "confirmed": 0}
    for number, chosen in enumerate(choices(len(moments), 8, name)):
        place, copy = tmp_path / "mixed", tmp_path / "copy"
        mixed(moments, chosen, place)
        before = contents(place)
        more = {"need": 16} if number % 2 else {}
        refused = refusal(lambda: resume(place, **more, **life.things()))  # noqa: B023 - called at once
        if refused is None:
            found = verify(place)
        else:
            assert contents(place) == before, (number, chosen, "something was written")
            assert f"gosprl repair {place} TARGET" in refused, (number, chosen, refused)
            repair(place, copy)
            resume(copy, **life.things())
            found = verify(copy)
        assert not found.damaged, (number, chosen, refused, found)
        outcomes["confirmed" if refused is None else "refused"] += 1
        shutil.rmtree(place)
        shutil.rmtree(copy, ignore_errors=True)
    assert min(outcomes.values()) > 0, outcomes

"""The rules of a history: begin runs, go on with them, kill, copy, rename and damage them, ask questions."""

import contextlib
import shutil
import tempfile
from collections import Counter
from functools import partial
from itertools import count
from pathlib import Path
from typing import ClassVar

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import gosprl
from evidence.histories import invariants
from evidence.histories.damage import judge
from evidence.histories.invariants import DELTA
from evidence.histories.lives import Event, carried, diary_of, live, programs, written_at_once
from evidence.histories.records import Run, contents, counted
from evidence.histories.systems import Broken, Kinds, Law, Step, Walked, corridor
from gosprl.errors import CollectionError, InputError
from gosprl.fleet.simulated import Simulated
from gosprl.runs import Out

SHM = Path("/dev/shm")
SYNC = (10, 1e6)  # steps between two syncs; no clock decides when
ENOUGH = 1200  # steps of an answer
QUESTIONS = {"best_state": {}, "estimate_rewards": {"epsilon": 0.3}, "estimate_model": {"eta": 0.6}}

kinds = st.sampled_from(sorted(Kinds))
carriers = st.sampled_from(["one", "one", "one", "simulated", "simulated", "threads"])
biases = st.sampled_from(["nothing", "reward", "state", "late"])
seeds = st.integers(0, 1)
needs = st.integers(1, 4)
few = st.none() | st.integers(1, 40)
picks = st.integers(0, 5)
resets = st.sampled_from(["terminal", "terminal", "anytime"])
moments = st.integers(0, 3) | st.integers(0, 30)
events = st.just(Event()) | st.builds(Event, st.sampled_from(["kill", "kill", "interrupt", "fail", "rename"]), moments)


def unlucky(life, bias):
    """Whether a fleet gave up since all walkers that tried a pair were lost."""
    return bias != "nothing" and isinstance(life.error, CollectionError) and "walkers that tried" in str(life.error)


class Unlevelled(gosprl.Confidence):
    """Sets that state no level."""

    def intervals(self, model, rows=None):
        return gosprl.KL(0.5).intervals(model, rows)


class History(RuleBasedStateMachine):
    """One history, in a directory of its own."""

    tried: ClassVar[Counter] = Counter()  # rules, over all histories of this process

    def __init__(self):
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(dir=SHM if SHM.is_dir() else None, prefix="gosprl-history-")
        self.folder = Path(self._folder.name)
        self._around = contextlib.ExitStack()
        self._around.enter_context(programs())
        self._around.enter_context(written_at_once())
        self.numbers = count()
        self.runs: list[Run] = []
        self.files: list[tuple[Path, Run, list]] = []  # exported: file, the run it is of, what it has
        self.older: dict[str, dict] = {}  # path of a run -> bytes that its files once had
        self.tried["history"] += 1

    def close(self):
        """Remove everything."""
        self.teardown()

    def teardown(self):
        self._around.close()
        self._folder.cleanup()

    @invariant()
    def others_are_untouched(self):
        """A call writes to its own run only."""
        for run in self.runs:
            invariants.untouched(run)

    def place(self, word):
        return self.folder / f"{word}{next(self.numbers)}"

    def pick(self, number):
        return self.runs[-1 - number % len(self.runs)]

    # begin

    @initialize(kind=kinds, carrier=carriers, seed=seeds, need=needs, few=few)
    def first(self, kind, carrier, seed, need, few):
        """There is a run from the beginning on."""
        self.begin(kind, carrier, "nothing", seed, need, few, "terminal", Event(), [], "run")

    @rule(
        kind=kinds,
        carrier=carriers,
        bias=biases,
        seed=seeds,
        need=needs,
        few=few,
        resets=resets,
        event=events,
        data=st.lists(picks, max_size=2),
        form=st.sampled_from(["run", "run", "result"]),
    )
    def new(self, kind, carrier, bias, seed, need, few, resets, event, data, form):
        """Begin a run, perhaps with the data of others."""
        self.begin(kind, carrier, bias, seed, need, few, resets, event, data, form)

    def begin(self, kind, carrier, bias, seed, need, few, resets, event, data, form):
        kind = self.kind_with(data, kind)
        asked, alone = {"need": need}, callable(Kinds[kind].given.get("actions"))
        if not Kinds[kind].is_table:
            asked["resets"] = "terminal" if alone else resets
        carrier = "one" if alone else carrier
        run = Run(self.place("run"), kind, carrier, asked, seed)
        found = self.data_of(kind, data, form)
        if found is None:
            return
        sources, arguments, has_to_be_refused = found
        run.sources, run.was_fleet = sources, carrier != "one"
        run.had = [entry for source in sources for entry in source.all_entries()]
        self.tried["begin" + (" with data" if sources else "")] += 1
        life = self.life(run, bias, few, event, {**arguments, "seed": seed})
        if has_to_be_refused:
            assert isinstance(life.error, InputError), "equal sources are not refused"
            return
        self.settle(run, life, event, bias, new=True)

    def kind_with(self, data, kind):
        """The kind of system that the data are of, if there are data."""
        return self.pick(data[0]).kind if data and self.runs else kind

    def data_of(self, kind, picked, form):
        """(runs whose samples are counted first, arguments of `collect`, whether that has to be refused).

        None where that is not known here.
        """
        if not picked or not self.runs:
            return (), {}, False
        chosen = [run for run in (self.pick(number) for number in picked) if run.kind == kind and run.entries]
        if not chosen:
            return (), {}, False
        ancestors = [ancestor for run in chosen for ancestor in run.ancestors]
        shared = len(set(map(id, ancestors))) < len(ancestors)
        different = list({id(run): run for run in ancestors}.values())
        draws = [draw for run in different for draw in run.draws]
        again = len(set(draws)) < len(draws)  # as of two runs with one seed
        if len(chosen) > 1 and not shared and not again and len({run.seed for run in different}) < len(different):
            return None  # refused or not: a table, or a fleet that draws from a seed of its own
        if shared or again or form == "run" or any(run.result is None for run in chosen):
            return tuple(chosen), {"data": [str(run.path) for run in chosen]}, shared or again
        given = [run.result for run in chosen]
        return tuple(chosen), {"data": given, "data_order": "collected"}, False

    def life(self, run, bias, few, event, more, how="collect"):
        """One call about a run."""
        diary = diary_of(event)
        if event.what == "rename":
            self.rename_meanwhile(run, diary, event.when)
        entropy = [run.seed, 1000 + next(self.numbers)]
        system, given = carried(run.kind, run.carrier, diary, entropy, bias)
        steps = ENOUGH if few is None and not run.of.meetable else few
        if how == "collect":

            def work():
                out = Out(run.path, *SYNC)
                need, asked = run.asked["need"], {k: v for k, v in run.asked.items() if k != "need"}
                return gosprl.collect(system, need, out=out, max_steps=steps, delta=DELTA, **asked, **given, **more)
        else:
            own = {} if run.of.is_table else {"system": system}
            names = dict(zip(("sync_steps", "sync_seconds"), SYNC, strict=True))

            def work():
                return gosprl.resume(run.path, **own, **given, **more, **names, max_steps=steps)

        return live(work, diary, event, run.path)

    def rename_meanwhile(self, run, diary, when):
        """The directory gets another name while the run is made, and a finished run comes into its place."""
        others = [other for other in self.runs if other.path != run.path and other.whole]
        moved = run.path.with_name(run.path.name + ".moved")

        def rename():
            if run.path.exists():
                run.path.rename(moved)
                if others:
                    shutil.copytree(others[0].path, run.path, ignore=shutil.ignore_patterns("lock"))

        diary.at[when] = rename
        diary.put_back = lambda: self.put_back(run, moved, others)

    def put_back(self, run, moved, others):
        if not moved.exists():
            return
        if others:
            there = contents(run.path)
            assert there == others[0].files or there == contents(others[0].path), (
                "a run was written into another one's directory"
            )
        else:
            assert not (run.path / "manifest.json").exists(), "a renamed run was written where it was before"
        shutil.rmtree(run.path, ignore_errors=True)
        moved.rename(run.path)

    def settle(self, run, life, event, bias, new=False):
        """Look at what a life left, and keep it."""
        fleet = run.carrier != "one"
        if hasattr(life.diary, "put_back"):
            life.diary.put_back()
        if event.what == "kill" and life.killed is not None:
            shutil.rmtree(run.path, ignore_errors=True)
            life.killed.rename(run.path)
            life = life._replace(value=None, error=None)
        elif life.error is not None:
            may = (event.what in ("fail", "rename") and life.diary.begun > event.when) or event.what == "rename"
            assert isinstance(life.error, CollectionError), f"refused: {life.error!r}"
            assert may or unlucky(life, bias), f"failed: {life.error}"
            life = life._replace(
                value=life.error.result if event.what == "fail" else None
            )  # may have more than the disk
        killed = event.what in ("kill", "rename")
        if not (run.path / "manifest.json").exists():
            assert new or not run.entries, "a run has disappeared"
            if life.value is not None and not run.sources:
                assert not life.value.met or life.value.steps, "met, though nothing was seen"
            if not new:
                self.runs.remove(run)
            return
        invariants.new_draws(run, life)
        there = invariants.log_holds(run, life, killed, fleet)
        new_entries = len(there) - len(run.entries)
        if fleet and new_entries:  # its log is in another order than the diary
            new_entries = len(life.diary.draws)
        run.draws |= set(life.diary.draws[:new_entries])  # after a kill, others are in no sample and may come again
        run.entries, run.result = there, life.value
        if killed:  # perhaps before it was written what is asked for now
            run.believe_manifest()
        if new:
            self.runs.append(run)
        self.check(run)

    def check(self, run):
        """Everything that holds of a run at any time."""
        if run.result is not None:
            invariants.result_holds(run, run.result)
        invariants.verified(run)
        invariants.shows(run)
        run.keep()

    # go on

    @rule(
        which=picks,
        how=st.sampled_from(["resume", "resume", "collect"]),
        more=st.integers(0, 3),
        carrier=carriers,
        bias=biases,
        few=few,
        event=events,
    )
    def go_on(self, which, how, more, carrier, bias, few, event):
        """Go on with a run: as it is, with a larger need, or with other walkers."""
        if not self.runs:
            return
        run = self.pick(which)
        self.older[str(run.path)] = contents(run.path)
        if how == "collect":
            more, carrier = 0, run.carrier
            if carrier != "one" or run.sources:
                return
        if run.was_fleet and carrier == "one":
            carrier = "simulated"
        carrier = "one" if callable(run.of.given.get("actions")) else carrier
        self.tried[
            "go on" + (" with more need" if more else "") + (", other walkers" if carrier != run.carrier else "")
        ] += 1
        run.carrier, run.was_fleet = carrier, run.was_fleet or carrier != "one"
        arguments = {"seed": run.seed} if how == "collect" else {}
        if more:
            run.asked = {**run.asked, "need": run.asked["need"] + more}
            arguments["need"] = run.asked["need"]
        few = None if few is None else few + sum(isinstance(entry, Step) for entry in run.entries)
        life = self.life(run, bias, few, event, arguments, how)
        self.settle(run, life, event, bias)

    @rule(which=picks)
    def copy(self, which):
        """Copy a run; both may go on."""
        if not self.runs:
            return
        run = self.pick(which)
        self.tried["copy"] += 1
        target = self.place("copy")
        shutil.copytree(run.path, target, ignore=shutil.ignore_patterns("lock"))
        twin = Run(target, run.kind, run.carrier, run.asked, run.seed, list(run.entries), set(run.draws), run.sources)
        twin.had = run.had
        twin.result, twin.was_fleet, twin.origin = run.result, run.was_fleet, run.origin or run
        self.runs.append(twin)
        self.check(twin)

    @rule(which=picks)
    def rename(self, which):
        """Rename a run."""
        if not self.runs:
            return
        run = self.pick(which)
        self.tried["rename"] += 1
        target = self.place("renamed")
        run.path.rename(target)
        run.path = target
        self.check(run)

    # damage

    @rule(
        which=picks,
        how=st.sampled_from(["shorten", "remove", "older", "another's"]),
        file=st.integers(0, 9),
        place=st.floats(0, 1, exclude_max=True),
        other=picks,
    )
    def damage(self, which, how, file, place, other):
        """Damage a copy of a run, and go on with that: refused, or right."""
        if not self.runs:
            return
        run = self.pick(which)
        name = sorted(run.files)[file % len(run.files)]
        name = "certificate.json" if (file > 6 or how == "another's") and run.whole else name
        given = {"older": self.older.get(str(run.path), {}), "another's": self.pick(other).files}.get(how, run.files)
        if name not in given:
            return
        data = {"shorten": given[name][: int(place * len(given[name]))], "remove": None}.get(how, given[name])
        if data == run.files[name]:
            return
        self.tried[f"damage: {how}"] += 1
        target = self.place("damaged")
        shutil.copytree(run.path, target, ignore=shutil.ignore_patterns("lock"))
        (target / name).unlink() if data is None else (target / name).write_bytes(data)
        judge(self, run, target, f"{how} {name}")
        shutil.rmtree(target)

    # look, and hand over

    @rule(which=picks, ending=st.sampled_from(["npz", "csv", "parquet"]))
    def export(self, which, ending):
        """Export a run, and import it again: the same counts."""
        if not self.runs:
            return
        run = self.pick(which)
        if not run.entries:
            return
        self.tried["export"] += 1
        file = self.place("file").with_suffix(f".{ending}")
        gosprl.exchange.export(run.path, file)
        diary = diary_of(Event())
        system, given = carried(run.kind, "one", diary, None, "nothing")
        around = {} if run.of.is_table else {"resets": run.asked.get("resets")}
        life = live(
            lambda: gosprl.collect(
                system, 1, data=str(file), data_order="collected", seed=7, max_steps=1, **around, **given
            ),
            diary,
        )
        if life.error is not None:
            if run.was_fleet and isinstance(life.error, InputError):
                return  # rows in the order of return, or with unknown outcomes, are refused
            raise AssertionError(f"an exported file is refused: {life.error!r}")
        visits, _ = counted([*run.entries, *diary.entries])
        got = Counter({pair: int(n) for pair, n in invariants.pairs(life.value).items() if n})
        if run.of.is_table:
            assert not visits - got, "the imported file lacks samples"
        else:
            assert got == visits, f"the imported file has other counts: {got - visits}, {visits - got}"

    @rule(
        kind=kinds,
        carrier=st.sampled_from(["simulated", "simulated", "one"]),
        bias=st.sampled_from(["reward", "reward", "state", "late"]),
        seed=seeds,
        question=st.sampled_from(["best_state", *sorted(QUESTIONS)]),
        data=st.lists(picks, max_size=1),
        levelled=st.booleans(),
    )
    def answer(self, kind, carrier, bias, seed, question, data, levelled):
        """Ask a question whose answer is known."""
        self.tried[f"answer: {question}"] += 1
        kind = self.kind_with(data, kind)
        carrier = "one" if callable(Kinds[kind].given.get("actions")) else carrier
        diary = diary_of(Event())
        entropy = [seed, 1000 + next(self.numbers)]
        system, given = carried(kind, carrier, diary, entropy, bias)
        found = self.data_of(kind, data, "run")
        if found is None:
            return
        _, arguments, refused = found
        if not levelled:
            arguments["confidence"] = Unlevelled()
        function, path = getattr(gosprl.applications, question), self.place("answer")
        life = live(
            lambda: function(
                *(system,),
                **QUESTIONS[question],
                delta=DELTA,
                strategy="random",
                seed=seed,
                max_steps=ENOUGH * (1 + (question == "best_state")),
                out=Out(path, 1000, 1e6),
                **given,
                **arguments,
            ),
            diary,
        )
        if refused and isinstance(life.error, InputError):
            return
        assert not refused, "equal sources are not refused"
        if life.error is not None:
            assert unlucky(life, bias), f"{question}: {life.error!r}"
            return
        if not levelled and question == "estimate_model":
            assert life.value.guarantee.level is None, f"sets without a level give {life.value.guarantee}"
        invariants.answer_holds(Kinds[kind].law, question, life.value)
        found = gosprl.runs.verify(path, **Kinds[kind].given)
        wrong = [f"{check.name}: {check.text}" for check in found.checks if check.ok is False]
        assert not wrong, f"{question}: an honest run is refused: {wrong}"
        shutil.rmtree(path)

    @rule(carrier=st.sampled_from(["one", "simulated", "threads"]), seed=seeds)
    def bug(self, carrier, seed):
        """A system with a bug in one action ends the run, whoever walks, and is named."""
        self.tried["a bug of the system"] += 1
        diary = diary_of(Event())
        system = Broken(diary) if carrier == "one" else partial(Broken, diary)
        fleet = {"threads": "threads:2", "simulated": Simulated(partial(Broken, diary), 2, entropy=seed)}
        given = {} if carrier == "one" else {"workers": fleet[carrier]}
        life = live(lambda: gosprl.collect(system, 2, seed=seed, **given), diary)
        assert isinstance(life.error, CollectionError), "a bug of the system is not heard of"
        assert "a bug of the system" in str(life.error), f"a bug of the system is not named: {life.error}"

    @rule(size=st.integers(2, 5), need=needs, seed=seeds)
    def limit(self, size, need, seed):
        """Limits of a corridor in which a reset at any time does what an action does, in closed form."""
        self.tried["limit"] += 1
        law = Law(corridor(size, slip=0), (0.5,) * size)
        # each cell is gone home from: on the way there are more steps forwards than needed, but in the last cell
        limit = need * (size + size * (size - 1) / 2 + 1)
        for resets, more in (("terminal", 0), ("anytime", need - 1)):  # the first reset is there
            system = Walked(law, diary_of(Event()))
            life = live(lambda: gosprl.collect(system, need, seed=seed, resets=resets), system.diary)  # noqa: B023
            result = life.value
            assert abs(result.limit - limit - more) < 1e-6, f"{resets}: limit {result.limit}, by hand {limit + more}"
            paid = sum(isinstance(e, Step) for e in system.diary.entries) + result.quits
            assert paid >= result.limit - 1e-6, f"{resets}: {paid} paid, below the limit {result.limit}"

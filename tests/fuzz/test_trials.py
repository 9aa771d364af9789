"""The trials themselves: a printed seed and number give the same random numbers again."""

from support.trials import Trials


def test_a_trial_is_repeated_by_its_seed_and_number() -> None:
    first = Trials(7, "one", 0.05)
    drawn = [rng.integers(2**62) for rng in first]
    again = Trials(7, "one", 0.0, only=first.number)
    assert [rng.integers(2**62) for rng in again] == drawn[-1:]
    assert len(set(drawn)) == len(drawn)


def test_two_fuzzers_of_one_seed_differ() -> None:
    assert [r.integers(2**62) for r in Trials(7, "a", 0.0)] != [r.integers(2**62) for r in Trials(7, "b", 0.0)]

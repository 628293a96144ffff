"""The edits of the study on small edits do what they say, and nothing else."""

import numpy as np
import pytest

import changes
from edits_page import auc, share_costlier

TEXT = "The old bridge has carried heavy lorries over the river since 1987, and will hold."


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_swapping_keeps_the_words_and_moves_two_for_each_swap(count: int) -> None:
    swapped = changes.swap(TEXT, rng(), count)
    assert swapped is not None
    old, new = TEXT.split(), swapped.split()
    assert sorted(new) == sorted(old)
    assert sum(x != y for x, y in zip(old, new, strict=True)) == 2 * count


def test_deleting_takes_content_words_and_keeps_what_was_deleted_before() -> None:
    once, twice = (changes.delete(TEXT, rng(), count) for count in (1, 2))
    assert once is not None
    assert twice is not None
    gone = set(TEXT.split()) - set(once.split())
    assert len(gone) == 1
    assert gone < set(TEXT.split()) - set(twice.split())
    assert gone <= {"old", "bridge", "carried", "heavy", "lorries", "river"}


def test_a_number_becomes_another_of_the_same_length() -> None:
    changed = changes.renumber(TEXT, rng())
    assert changed is not None
    assert len(changed) == len(TEXT)
    assert sum(x != y for x, y in zip(TEXT, changed, strict=True)) == 1
    assert "987," in changed
    assert "0987" not in changed


def test_a_word_is_put_behind_the_first_auxiliary() -> None:
    assert changes.insert(TEXT, "not") == TEXT.replace("has carried", "has not carried")
    assert changes.insert("It is no good.", "not") is None
    assert changes.insert("She didn't say that it is.", "not") is None


def test_looks() -> None:
    assert changes.lower("Cats see Rome.") == "cats see rome."
    assert changes.unmark("Is it 3.5?") == "Is it 3.5"
    assert changes.unmark('He said "No."') == 'He said "No"'


def test_a_sentence_without_a_place_for_an_edit_has_none() -> None:
    assert changes.swap("Yes, of course.", rng()) is None
    assert changes.delete("He is.", rng()) is None
    assert changes.renumber("He is.", rng()) is None
    assert changes.insert("Cats sleep.", "not") is None
    assert changes.lower("cats") is None
    assert changes.unmark("cats") is None


def test_auc_and_the_share_that_costs_more_count_ties_half_and_pass_over_nan() -> None:
    assert auc(np.array([2.0, 1.0, np.nan]), np.array([1.0, 0.0])) == pytest.approx(3.5 / 4)
    assert share_costlier(np.array([2.0, 1.0, np.nan, 0.0]), np.array([1.0, 1.0, 0.0, 1.0])) == 0.5

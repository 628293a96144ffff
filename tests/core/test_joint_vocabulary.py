"""STD's joint vocabulary: masses, positions and what is cancelled, by hand."""

import math

import numpy as np
import pytest

import freight
from clouds import cloud
from freight.core.joint_vocabulary import Joint, JointPairs
from freight.core.weightings import Mass

EAST, NORTH, WEST = [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]


def pairs_of(joint: Joint, hyp: str, ref: str) -> JointPairs:
    known = {"a": EAST, "b": NORTH, "c": WEST}
    texts = [hyp, ref]
    both = Mass()(cloud(texts, [[known[word] for word in text.split()] for text in texts]))
    (pairs,) = joint(both, both, np.array([[0, 1]]))
    assert isinstance(pairs, JointPairs)
    return pairs


def test_nsim_is_a_softmax_of_similarities_to_the_centroid() -> None:
    pairs = pairs_of(Joint(shared="moved"), "a", "b")
    inside, outside = math.e, math.exp(0.0)  # b is orthogonal to the text a
    total = inside + outside
    np.testing.assert_allclose(sorted(pairs.hyp_weights[0, :2]), [outside / total, inside / total])
    np.testing.assert_allclose(sorted(pairs.ref_weights[0, :2]), [outside / total, inside / total])
    assert pairs.moved.tolist() == [1.0]


def test_own_masses_count_words() -> None:
    pairs = pairs_of(Joint(mass="own", shared="moved"), "a a b", "b")
    assert sorted(pairs.hyp_weights[0, :2].tolist()) == pytest.approx([1 / 3, 2 / 3])
    assert pairs.ref_sizes.tolist() == [1]


def test_shared_mass_is_cancelled_and_the_rest_scaled_to_1() -> None:
    pairs = pairs_of(Joint(mass="own"), "a a b", "b c")  # b: min(1/3, 1/2) cancels
    assert pairs.moved.tolist() == pytest.approx([2 / 3])
    assert pairs.hyp_sizes.tolist() == [1]
    np.testing.assert_allclose(pairs.hyp_weights[0, :1], [1.0])
    np.testing.assert_allclose(sorted(pairs.ref_weights[0, :2]), [1 / 4, 3 / 4])


def test_identical_texts_have_nothing_to_transport() -> None:
    assert pairs_of(Joint(), "a b", "b a").moved.tolist() == pytest.approx([0.0], abs=1e-14)


def test_positions_are_last_occurrences_over_the_length() -> None:
    pairs = pairs_of(Joint(mass="own", shared="moved"), "a b a", "b c")
    hyp, _ = pairs.positions
    by_id = dict(zip(pairs.ids[0][0, :2].tolist(), hyp.in_hyp[0, :2].tolist(), strict=True))
    assert sorted(by_id.values()) == pytest.approx([2 / 3, 1.0])
    in_ref = hyp.in_ref[0, :2]
    assert np.isnan(in_ref).sum() == 1  # a is not in the reference
    assert np.nanmax(in_ref) == pytest.approx(0.5)


def test_similarities_are_cosines() -> None:
    pairs = pairs_of(Joint(mass="own", shared="moved"), "a", "b c")
    assert sorted(pairs.similarity()[0, 0, :2].tolist()) == pytest.approx([-1.0, 0.0])
    assert not pairs.orthogonal().similarity().any()


def test_vectors_without_texts_are_refused() -> None:
    empty = Mass()(cloud(["a"], [[EAST]]).only(np.zeros(1, bool)))
    with pytest.raises(freight.InvalidInput, match="needs texts"):
        next(Joint()(empty, empty, np.array([[0, 0]])))

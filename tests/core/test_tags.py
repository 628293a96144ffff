"""Tags of a spaCy pipeline take their share of the cost."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import freight

spacy: Any = pytest.importorskip("spacy")
POS = {"dogs": "NOUN", "dog": "NOUN", "bark": "VERB", "barks": "VERB", "a": "DET"}


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipeline whose tags are set by hand."""

    def by_hand(text: Any) -> Any:
        for word in text:
            word.pos_ = POS.get(word.text, "")
        return text

    spacy.Language.component("by_hand", func=by_hand)
    made = spacy.blank("en")
    made.add_pipe("by_hand")
    folder = tmp_path_factory.mktemp("pipeline")
    made.to_disk(folder)
    return folder


def test_a_share_of_the_cost_is_whether_tags_agree(pipeline: Path) -> None:
    hyp, ref = "dogs bark loudly", "a dog barks"
    encoder = freight.encoder("hashed")
    plain = freight.load("lazy-emd", encoder=encoder).explain(hyp, ref).views[0]
    tagged = freight.load("lazy-emd", encoder=encoder, tags=str(pipeline), tag_share=0.25)
    view = tagged.explain(hyp, ref).views[0]
    assert view.name == "tokens"
    differ = np.array([[1, 0, 1], [1, 1, 0], [1, 1, 1]])
    np.testing.assert_allclose(view.cost, 0.75 * plain.cost + 0.25 * differ, atol=1e-6)
    assert "tag" not in freight.load("lazy-emd", encoder=encoder).signature
    assert "Tagged(" in tagged.signature


def test_tags_take_a_share_of_stds_cosines(pipeline: Path) -> None:
    hyp, ref = "dogs bark loudly", "a dog barks"
    settings = {"encoder": "hashed", "shared": "moved"}
    plain = freight.load("std", **settings).explain(hyp, ref)
    tagged = freight.load("std", **settings, tags=str(pipeline), tag_share=0.25)
    tags = {**POS, "loudly": ""}
    for before, after in zip(plain.views, tagged.explain(hyp, ref).views, strict=True):
        assert before.hyp.names == after.hyp.names
        names = [[name.split() for name in side.names] for side in (after.hyp, after.ref)]
        alike = [
            [
                np.mean([tags[x] == tags[y] for x, y in zip(one, other, strict=True)])
                for other in names[1]
            ]
            for one in names[0]
        ]
        cosine = 1.0 - before.terms["meaning"] / 0.6
        known = cosine > 0  # elsewhere it was clipped
        expected = 0.6 * (1.0 - (0.75 * cosine + 0.25 * np.array(alike)))
        np.testing.assert_allclose(after.terms["meaning"][known], expected[known], atol=1e-6)
        np.testing.assert_allclose(after.terms["order"], before.terms["order"], atol=1e-12)
    assert "Tagged(" in tagged.signature


def test_a_word_under_two_tags_is_two_units_of_std(tmp_path: Path) -> None:
    """Order aside, the same words with the same tags cost nothing, with other tags they do."""

    def second_is_a_verb(text: Any) -> Any:
        for word in text:
            word.pos_ = "VERB" if word.i == 1 else "NOUN"
        return text

    spacy.Language.component("second_is_a_verb", func=second_is_a_verb)
    made = spacy.blank("en")
    made.add_pipe("second_is_a_verb")
    made.to_disk(tmp_path)
    metric = freight.load("std", encoder="hashed", tags=str(tmp_path), tag_share=0.5)
    pair = ["dogs bark"], ["bark dogs"]
    assert freight.load("std", encoder="hashed").score(*pair)["unigram"][0] == 0.0
    there = metric.score(*pair)["unigram"][0]
    assert there > 0.01
    assert metric.score(*pair[::-1])["unigram"][0] == pytest.approx(there)
    assert metric.score(pair[0], pair[0])["unigram"][0] == 0.0


def test_sub_words_take_the_tag_of_their_word_and_norms_stay(pipeline: Path) -> None:
    from freight.core.units import Tagged, tokens

    cloud = freight.encoder("hashed").encode(["a dog barks", "", "dogs"], [0, 1])
    tagged = Tagged(tokens, str(pipeline), 0.4)(cloud)
    before, after = (one.layers.norm(dim=-1).numpy() for one in (cloud, tagged))
    np.testing.assert_allclose(before, after, rtol=1e-5)


def test_a_lone_surrogate_has_a_tag_like_any_character(pipeline: Path) -> None:
    tagged = freight.load("lazy-emd", encoder="hashed", tags=str(pipeline), tag_share=0.25)
    odd, replaced = (tagged.score([f"a {x} dog"], ["a dog"]) for x in ("\ud800", "\ufffd"))
    assert odd["transport"] == replaced["transport"]


def test_what_is_missing_is_said(pipeline: Path) -> None:
    metric = freight.load("lazy-emd", encoder="hashed", tags="no_such_pipeline")
    with pytest.raises(freight.InvalidInput, match="no_such_pipeline"):
        metric.score(["a dog"], ["dogs"])
    parsed = freight.load("lazy-emd", encoder="hashed", tags=str(pipeline), tag="dep")
    with pytest.raises(freight.InvalidInput, match="no parser"):
        parsed.score(["a dog"], ["dogs"])
    with pytest.raises(freight.InvalidInput, match="pos, dep"):
        freight.load("lazy-emd", encoder="hashed", tags="any", tag="lemma")
    with pytest.raises(freight.InvalidInput, match="tag_share=2"):
        freight.load("lazy-emd", encoder="hashed", tags="any", tag_share=2)
    with pytest.raises(freight.InvalidInput, match="pooling"):
        freight.load("lazy-emd", encoder="hashed", tags="any", pooling="barycenter")

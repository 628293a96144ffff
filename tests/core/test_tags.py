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


def test_sub_words_take_the_tag_of_their_word_and_norms_stay(pipeline: Path) -> None:
    from freight.core.units import Tagged, tokens

    cloud = freight.encoder("hashed").encode(["a dog barks", "", "dogs"], [0, 1])
    found = Tagged(tokens, str(pipeline), 0.4)(cloud)
    before, after = (one.layers.norm(dim=-1).numpy() for one in (cloud, found))
    np.testing.assert_allclose(before, after, rtol=1e-5)


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

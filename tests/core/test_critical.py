"""What differs critically between two texts, and what only looks different."""

import json
import os
import pickle
import sys
from pathlib import Path

import pytest

import freight
from freight.core.critical import critical_differences
from freight.core.flags import CriticalDifference, FlagKind
from freight.data.judgement_files import read_judgements

DATA = Path(os.environ.get("FREIGHT_DATA", "../shared")) / "data"
STUDIES = Path(__file__).parents[2] / "benchmarks/studies"


def kinds(hyp: str, *refs: str) -> list[str]:
    return [difference.kind for difference in critical_differences(hyp, refs)]


@pytest.mark.parametrize(
    ("hyp", "ref", "words"),
    [
        ("Lyon is the capital of France.", "Paris is the capital of France.", ("Lyon", "Paris")),
        ("It is not the capital of France.", "It is the capital of France.", ("not", "")),
        ("Take 10 mg a day.", "Take 100 mg a day.", ("10", "100")),
        ("Take 10 mg a day.", "Take 10 g a day.", ("10 mg", "10 g")),
        ("It costs $20 million.", "It costs 20 million euros.", ("20", "20 million euros")),
        ("They left in July.", "They left in June.", ("July", "June")),
        ("Four years ago.", "Forty years ago.", ("Four", "Forty")),
        ("He met Angela Merkel in Rome.", "He met Angela Merkel in Berlin.", ("Rome", "Berlin")),
        ("He went to with her.", "He went to Berlin with her.", ("", "Berlin")),
        ("The bridge cannot carry it.", "The bridge can carry it.", ("cannot", "")),
        ("He said это хорошо.", "He said that it is good.", ("это хорошо", "")),
        ("The cat the cat the cat sat.", "The cat sat.", ("The cat the cat the cat", "")),
        ("Der Zug kam um 5.", "Der Zug kam um 6.", ("5", "6")),
        ("Take it twice a day.", "Take it three times a day.", ("twice", "three")),
        ("Sales fell by a third.", "Sales fell by a quarter.", ("a third", "a quarter")),
        ("He finished second.", "He finished third.", ("second", "third")),
        ("It is his 21st.", "It is his twenty-second.", ("21", "twenty-second")),
        ("It costs 500 yen.", "It costs 500 yuan.", ("500 yen", "500 yuan")),
        ("She paid ₹300.", "She paid ¥300.", ("300", "300")),
        ("It was minus 5 degrees.", "It was 5 degrees.", ("5", "5")),
        ("It opens at 9 am.", "It opens at 9 pm.", ("9 am", "9 pm")),
        ("A million people marched.", "A billion people marched.", ("A million", "A billion")),
        ("They flew the F-16 home.", "They flew the F-35 home.", ("16", "35")),
        ("It is illegal to park here.", "It is legal to park here.", ("illegal", "legal")),
        ("He was able to walk.", "He was unable to walk.", ("able", "unable")),
        ("Toyota recalled the cars.", "Honda recalled the cars.", ("Toyota", "Honda")),
        ("Anna Schmidt won the race.", "Maria Schmidt won the race.", ("Anna", "Maria")),
        ("He flew from Madrid to Rome.", "He flew from Madrid to Milan.", ("Rome", "Milan")),
        ("He asked Dr. Patel for it.", "He asked Dr. Singh for it.", ("Patel", "Singh")),
        ("The match ended 2-1.", "The match ended 1-2.", ("2-1", "1-2")),
        ("It needs Python 3.10 now.", "It needs Python 3.1 now.", ("3.10", "3.1")),
        ("See section 4.2 of it.", "See section 4.20 of it.", ("4.2", "4.20")),
        ("It fell to minus 12 degrees.", "It fell to 12 degrees.", ("12", "12")),
        ("It fell to -12 °C.", "It fell to 12 °C.", ("12", "12")),
    ],
)
def test_the_words_of_a_difference(hyp: str, ref: str, words: tuple[str, str]) -> None:
    (difference,) = critical_differences(hyp, ref)
    assert (hyp[slice(*difference.hyp)], ref[slice(*difference.ref)]) == words
    assert difference.words == words


@pytest.mark.parametrize(
    ("hyp", "ref"),
    [
        ("Nine people died.", "9 people died."),
        ("twenty-one men", "21 men"),
        ("She came 21st.", "She came twenty-first."),
        ("It is due on 2021-03-21.", "It is due on March 21st, 2021."),
        ("one and a half million people", "1.5 million people"),
        ("three-and-a-half years", "three and a half years"),
        ("1/3 of the voters", "a third of the voters"),
        ("Three quarters of them left.", "75% of them left."),
        ("half an hour later", "30 minutes later"),
        ("It was two degrees below zero.", "It was -2 degrees."),
        ("In the nineties he moved.", "In the 1990s he moved."),
        ("COVID spread fast.", "Covid-19 spread fast."),
        ("Louis XIV was king.", "Louis the Fourteenth was king."),
        ("It is the least likely of all.", "It is the most unlikely of all."),
        ("Officials recalled the cars.", "Authorities recalled the cars."),
        ("Mr Ko explained it.", "Mr. Coe explained it."),
        ("two hundred and five", "205"),
        ("a dozen eggs", "12 eggs"),
        ("1,500 people", "1.500 people"),
        ("It cost $5m.", "It cost 5 million dollars."),
        ("50% of it", "fifty percent of it"),
        ("at 5 pm", "at 17:00"),
        ("2½ years", "2.5 years"),
        ("On 5/12/2014 he left.", "He left on 12 May 2014."),
        ("He weighs 63.5 kg.", "He weighs 140 pounds."),
        ("a year later", "one year later"),
        ("the 21st century", "the 21 st century"),
        ("It is not uncommon.", "It is common."),
        ("It is impossible.", "It is not possible."),
        ("They didn't come.", "They did not come."),
        ("He not only sang but danced.", "He sang and danced."),
        ("Sergey Petrov came.", "Sergej Petrow came."),
        ("The EU agreed.", "The European Union agreed."),
        ("The American army left.", "The army of the United States left."),
        ("It was a very very good day.", "It was a good day."),
        ("Paris.", "Paris is the capital of France."),
        ("Der Hund bellt laut.", "Der Köter kläfft laut."),
        ("same 1 not Rome", "same 1 not Rome"),
        ("Arsenal won 2-1.", "Arsenal's opponents lost 1-2."),
        ("It cost EUR 3.10.", "It cost EUR 3.1."),
        ("It rose to 3.10 percent.", "It rose to 3.1 percent."),
        ("It sank to -12 °C.", "It sank to 10 °F."),
        ("Peter and Susan left.", "Susan and Peter left."),
        ("Peter met Susan.", "Susan met Peter."),
        ("President Obama backs it.", "President Barack Obama backs it."),
        ("The Anti-Iranian mood grew.", "The mood against Iran grew."),
        ("It has yet to be built.", "It has not yet been built."),
        ("It is 117 thousand 378 today.", "It is 117,378 today."),
        ("It began at 01.00.", "It began at 01:00."),
        ('We have a plan. "', 'We have a plan in place for this."'),
        ("The 2nd Army came to it.", "The Second Army came to it."),
        ("He was 50th in the end.", "He was fiftieth in the end."),
        ("It weighed up to 1,300 kg.", "It weighed up to 3,000 pounds (1,300 kg)."),
        ("She lives in Bowie, Md., now.", "She lives in Bowie, Maryland, now."),
        ("There aren't people here.", "There are no people here."),
        ("Garbage is scattered.", "Rubbish is spread around."),
        ("It is 2 / 3 of the sum.", "It is 2/3 of the sum."),
        ("", "Nine people died in Rome."),
    ],
)
def test_what_only_looks_different(hyp: str, ref: str) -> None:
    assert kinds(hyp, ref) == []
    if hyp:
        assert kinds(ref, hyp) == []


def test_numbers_that_count_other_things() -> None:
    swapped = "He has three sons and two daughters."
    assert kinds("He has two sons and three daughters.", swapped) == ["number differs"] * 2
    assert kinds("He has two daughters and three sons.", swapped) == []


def test_names_that_have_changed_places() -> None:
    differences = critical_differences("Peter told Susan the news.", "Susan told Peter the news.")
    assert [one.words for one in differences] == [("Peter", "Susan"), ("Susan", "Peter")]
    assert (
        kinds("Anna Berg beat Eva Lind in it.", "Eva Lind beat Anna Berg in it.")
        == ["name differs"] * 2
    )
    assert kinds("They fly from Rome to Oslo.", "They fly from Oslo to Rome.") != []


def test_a_text_that_breaks_off() -> None:
    ref = "The minister said that the law would be changed before the end of the year."
    (difference,) = critical_differences("The minister said that the", ref)
    assert difference.kind == FlagKind.TRUNCATED
    assert difference.hyp == (26, 26)
    assert difference.words == ("", "law would be changed before the end of the year.")
    assert kinds("The minister said that the law would be changed.", ref) == []


def test_one_reference_that_agrees_is_enough() -> None:
    hyp = "He took 10 pills in Rome."
    assert kinds(hyp, "He took 12 pills in Rome.", "He took 10 pills.") == []
    several = critical_differences(
        hyp, ["He took 12 pills in Rome.", "He took 10 pills in Bern."], winner=1
    )
    assert several == ()
    both = "He took 12 pills in Rome.", "In Rome he took 14 pills."
    (difference,) = critical_differences(hyp, both, winner=1)
    assert difference.words == ("10", "14")


def test_a_difference_is_a_flag_with_spans() -> None:
    (difference,) = critical_differences("Take 10 mg.", "Take 100 mg.")
    assert difference == "number differs: “10” for “100”"
    assert difference.label == "number differs"
    assert pickle.loads(pickle.dumps(difference)).ref == (5, 8)
    assert json.loads(json.dumps(difference.record)) == {
        "kind": "number differs",
        "side": None,
        "share": None,
        "hyp": [5, 7],
        "ref": [5, 8],
    }


def test_results_get_them_on_request_and_scores_stay() -> None:
    hyps, refs = ["Take 10 mg.", "All is well."], ["Take 100 mg.", "All is well."]
    result = freight.load("chrf").score(hyps, refs)
    flagged = result.with_differences(hyps, refs)
    assert [len(one) for one in flagged.flags] == [1, 0]
    assert isinstance(flagged.flags[0][0], CriticalDifference)
    assert (flagged["score"] == result["score"]).all()
    table = flagged.to_arrow().column("flags").to_pylist()
    assert table == [["number differs: “10” for “100”"], []]


@pytest.mark.parametrize(
    "text",
    ["a " * 3000, "no " * 3000, "1 " * 3000, "1" * 3000, "1,1." * 900, "Aa " * 2000, "a, " * 2000,
     "&#39;" * 900, "not " + "just but " * 500, "½" * 900, "\ud800 5", "٣٤ २ 万億", "5:" * 800],
    ids=lambda text: repr(text[:8]),
)  # fmt: skip
def test_strange_texts_are_read_in_time(text: str) -> None:
    for difference in critical_differences(text, "In 5 days he will not be in Rome."):
        assert difference.words[0] == text[slice(*difference.hyp)]
    critical_differences("In 5 days he will not be in Rome.", text)


def edited() -> "list[tuple[str, str, str]]":
    """The kind of the edit, the edited sentence and the sentence, of the study of small edits."""
    sys.path.insert(0, str(STUDIES))
    try:
        import changes
    finally:
        sys.path.remove(str(STUDIES))
    import numpy as np

    rows = [line.split("\t") for line in (STUDIES / "sentences.tsv").read_text().splitlines()]
    edits = [("negation differs", negated, ref) for ref, _, negated in rows]
    if (DATA / "wmt15-da.jsonl.gz").exists():
        judged = read_judgements(DATA / "wmt15-da.jsonl.gz")
        pairs = zip(judged.lang_pairs, judged.refs, strict=True)
        texts = sorted({refs[0] for pair, refs in pairs if pair.endswith("-en")})
        for k, ref in enumerate(texts):
            number = changes.renumber(ref, np.random.default_rng(k))
            negation = changes.insert(ref, "not")
            edits += [("number differs", number, ref)] if number else []
            edits += [("negation differs", negation, " ".join(ref.split()))] if negation else []
    return edits


def test_every_edit_of_a_number_or_a_negation_is_seen() -> None:
    missed = [(hyp, ref) for kind, hyp, ref in edited() if kind not in kinds(hyp, ref)]
    assert missed == []


@pytest.mark.skipif(not DATA.exists(), reason=f"there is no {DATA}")
def test_few_outputs_that_people_like_are_flagged() -> None:
    judged = read_judgements(DATA / "wmt15-da.jsonl.gz")
    ratings = judged.human["da_z"]
    flagged = count = 0
    for pair in sorted({pair for pair in judged.lang_pairs if pair.endswith("-en")}):
        rows = [k for k, name in enumerate(judged.lang_pairs) if name == pair]
        rows.sort(key=lambda k: -ratings[k])
        for k in rows[: len(rows) // 4]:
            flagged += bool(critical_differences(judged.hyps[k], judged.refs[k]))
            count += 1
    assert count == 500
    assert flagged <= 0.03 * count

"""Figures from the papers, by our labels."""

_DARR = ("cs-en", "et-en", "tr-en", "en-cs")
TAUS = {
    pair: {
        label: taus[k]
        for label, taus in {
            "sentence-bleu:score": (0.233, 0.285, 0.145, 0.389),
            "bert-score:precision": (0.387, 0.389, 0.280, 0.539),
            "bert-score:recall": (0.388, 0.391, 0.290, 0.571),
            "bert-score:f1": (0.404, 0.397, 0.292, 0.559),
            "yisi-1:f": (0.406, 0.396, 0.294, 0.562),
            "f-alpha:f": (0.404, 0.398, 0.289, 0.570),
            "emd:transport": (0.393, 0.389, 0.276, 0.548),
            "lazy-emd:transport": (0.403, 0.395, 0.281, 0.555),
        }.items()
    }
    for k, pair in enumerate(_DARR)
}
"""Lazy-EMD: WMT18, DARR tau, with roberta-large (en-cs: bert-base-multilingual-cased)."""

EXAMPLES = {
    ("The boy in a coat.", "The young man in a slicker."): (0.9560, 0.9419, 0.9489, 0.0533),
    ("The man in a coat.", "The young man in a slicker."): (0.9609, 0.9408, 0.9507, 0.0553),
    ("The young man in a slicker.", "The boy in a coat."): (0.9419, 0.9560, 0.9489, 0.0511),
    ("The old man in a slicker.", "The boy in a coat."): (0.9324, 0.9574, 0.9447, 0.0525),
}
"""Lazy-EMD, table 1: P, R, F and Lazy-EMD of a hyp and a ref; two and two, the better one first."""

WMT15 = {
    "cs-en": {
        "bert-score:f1": 0.743,
        "bary-score:distance": 0.742,
        "mover-score:similarity": 0.688,
    },
    "de-en": {
        "bert-score:f1": 0.722,
        "bary-score:distance": 0.741,
        "mover-score:similarity": 0.718,
    },
    "fi-en": {
        "bert-score:f1": 0.747,
        "bary-score:distance": 0.766,
        "mover-score:similarity": 0.700,
    },
    "ru-en": {
        "bert-score:f1": 0.740,
        "bary-score:distance": 0.737,
        "mover-score:similarity": 0.686,
    },
}
"""BaryScore: segment r with bert-base-uncased."""

WEBNLG = {
    "correctness": {
        "bary-score:distance": 0.917,
        "bert-score:f1": 0.855,
        "mover-score:similarity": 0.841,
        "sentence-bleu:score": 0.776,
    },
    "data_coverage": {
        "bary-score:distance": 0.878,
        "bert-score:f1": 0.747,
        "mover-score:similarity": 0.787,
        "sentence-bleu:score": 0.557,
    },
    "relevance": {
        "bary-score:distance": 0.894,
        "bert-score:f1": 0.833,
        "mover-score:similarity": 0.821,
        "sentence-bleu:score": 0.630,
    },
}
"""BaryScore: system-level r; the paper's BLEU stands beside our sentence BLEU."""

STD = {"cs-en": 0.577, "de-en": 0.603, "fi-en": 0.652, "ru-en": 0.644}
"""STD: WMT15 segment r with fastText's crawl vectors."""

WRD = {"ROUGE-1, published": (0.0817, 0.2213), "WRDScore, published": (0.0678, 0.1891)}
"""WRDScore: MSE and MAE on 150 pairs."""

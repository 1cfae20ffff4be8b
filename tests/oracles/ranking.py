# Rankings of a TREC run, query by query, against trec_eval (through pytrec_eval).
#
# How queries that cannot be measured are treated, on both sides:
#   * A query of the run that has no line in the qrels: both leave it out. With --count-empty metra
#     counts it as 0, which trec_eval cannot do.
#   * A query all of whose judged documents are irrelevant: trec_eval reports 0 for every measure;
#     metra leaves it out and counts it as skipped. With --count-empty it reports 0, too.
#   * A query of the qrels that is not in the run: both leave it out (trec_eval without -c).
# So there are two comparisons: one as metra is by default, against the queries with something
# relevant, and one with --count-empty, against all that trec_eval reports.

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytrec_eval

RANKINGS = 10_000
TOLERANCE = 1e-12
# Our name of each measure, trec_eval's request, and trec_eval's name of the value.
MEASURES = {
    "map": ("map", "map"),
    "ndcg": ("ndcg", "ndcg"),
    "ndcg@10": ("ndcg_cut.10", "ndcg_cut_10"),
    "mrr": ("recip_rank", "recip_rank"),
    "p@1": ("P.1", "P_1"),
    "p@5": ("P.5", "P_5"),
    "p@10": ("P.10", "P_10"),
    "r@5": ("recall.5", "recall_5"),
    "r@10": ("recall.10", "recall_10"),
}


def document_names(draw):
    """Ids whose order as text is not their order as numbers or in a dictionary: lengths differ,
    capitals come before small letters, punctuation before both, bytes beyond ASCII after."""
    names = [str(number) for number in range(1, 130)]
    names += [f"doc-{number}" for number in range(40)] + [f"DOC-{number}" for number in range(40)]
    names += [f"d{number:03}" for number in range(40)] + [f"_{number}.x" for number in range(20)]
    names += ["é1", "é", "z", "zz", "Z", "日本", "ø-9", "~", "a", "a-", "a0", "A0"]
    draw.shuffle(names)
    return names


def make(draw):
    names = document_names(draw)
    run, qrels = {}, {}
    for number in range(RANKINGS):
        query = f"q{number}"
        length = draw.randint(1, 40)
        chosen = draw.sample(names, length + draw.randint(0, 8))
        # Few distinct scores, so that most documents tie; eighths are exact in f32. Negative
        # scores and zeros are among them.
        levels = draw.randint(1, 12)
        run[query] = {document: draw.randint(-levels, levels) / 8 for document in chosen[:length]}
        # Any document may be judged, retrieved or not. One query in twenty has nothing relevant.
        grades = [0] if number % 20 == 0 else [0, 0, 0, 1, 1, 2, 3]
        judged = draw.sample(chosen, draw.randint(1, len(chosen)))
        qrels[query] = {document: draw.choice(grades) for document in judged}
        if number % 50 == 1:
            del qrels[query]
    for number in range(20):
        qrels[f"not-run-{number}"] = {names[0]: 1}
    return run, qrels


def write(folder, run, qrels):
    run_path, qrels_path = folder / "run.txt", folder / "qrels.txt"
    with run_path.open("w", encoding="utf-8") as file:
        for query, documents in run.items():
            # The rank column is wrong on purpose: the scores decide.
            for document, score in documents.items():
                file.write(f"{query} Q0 {document} 1 {score!r} oracle\n")
    with qrels_path.open("w", encoding="utf-8") as file:
        for query, documents in qrels.items():
            for document, grade in documents.items():
                file.write(f"{query} 0 {document} {grade}\n")
    return run_path, qrels_path


def metra(binary, run_path, qrels_path, *more):
    command = [binary, "eval", "--run", run_path, "--qrels", qrels_path, "--ties", "trec"]
    command += ["--measures", ",".join(MEASURES), "--per-query", "--json", *more]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def compare(title, found, expected):
    """Every value of every query; returns whether all agree."""
    if found.keys() != expected.keys():
        print(f"  {title}: other queries, such as {sorted(found.keys() ^ expected.keys())[:3]}")
        return False
    compared, largest, wrong = 0, 0.0, []
    for query, values in expected.items():
        for ours, (_, theirs) in MEASURES.items():
            difference = abs(found[query][ours] - values[theirs])
            compared += 1
            largest = max(largest, difference)
            if not difference <= TOLERANCE:
                wrong.append(f"{query} {ours}: {found[query][ours]!r}, not {values[theirs]!r}")
    counts = f"{compared} values of {len(expected)} queries"
    print(f"  {title}: {counts}, largest difference {largest:.1e}")
    for line in wrong[:5]:
        print(f"    {line}")
    return not wrong


def main():
    run, qrels = make(random.Random(1))
    judge = pytrec_eval.RelevanceEvaluator(qrels, {request for request, _ in MEASURES.values()})
    expected = judge.evaluate(run)
    relevant = {query for query in expected if max(qrels[query].values()) > 0}
    ties = sum(len(set(documents.values())) < len(documents) for documents in run.values())
    unranked = sum(any(g > 0 and d not in run[q] for d, g in qrels[q].items()) for q in expected)
    empty, unjudged = len(expected) - len(relevant), len(run) - len(expected)
    print(f"  {len(run)} rankings: {ties} have ties, {unranked} relevant documents not ranked,")
    print(f"  {empty} nothing relevant, {unjudged} no judgements")
    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder), run, qrels)
        plain = metra(sys.argv[1], *paths)
        counted = metra(sys.argv[1], *paths, "--count-empty")
    good = compare("something relevant", plain["per_query"], {q: expected[q] for q in relevant})
    if plain["skipped_queries"] != empty:
        print(f"  {plain['skipped_queries']} queries skipped, not {empty}")
        good = False
    nothing = {theirs: 0.0 for _, theirs in MEASURES.values()}
    good &= compare("all queries", counted["per_query"], {q: expected.get(q, nothing) for q in run})
    # The means are what users quote.
    for ours, (_, theirs) in MEASURES.items():
        mean = sum(expected[query][theirs] for query in relevant) / len(relevant)
        if abs(plain["measures"][ours] - mean) > TOLERANCE:
            print(f"  mean {ours}: {plain['measures'][ours]!r}, not {mean!r}")
            good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

"""Values and gradients of the in-batch losses by pytorch-metric-learning.

    pip install torch==2.15.0 pytorch-metric-learning==2.9.0
    python tests/oracles/constants/in_batch_losses.py

What it prints stands as constants in crates/metra/src/training/in_batch/oracle_tests.rs. It is run by hand,
not by tests/oracles/run: torch takes gigabytes and the constants change only with the batch here.

Where its definitions are not the papers', or not ours:
- MultiSimilarityLoss takes the mean over all rows of the batch, as the paper does, rows without a
  mined pair included. The miner keeps pairs by the paper's rule, with margin epsilon.
- SupConLoss takes the mean over rows whose loss is above 0; ours over rows that have a positive.
  Inside a row it takes the mean over the positives outside of the logarithm (L_out of the paper).
- ProxyAnchorLoss divides the positive part by the number of classes in the batch and the negative
  part by the number of all classes, as the paper does. A batch that lacks a class tells them apart.
"""

import math

import torch
from pytorch_metric_learning import losses, miners

ROWS, DIM = 10, 4
LABELS = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 2, 3])
# Class 4 has a proxy but no row.
CLASSES = 5


def entry(row, column, shift):
    return math.sin(1.3 * row + 0.7 * column * column + shift) + 0.4 * math.cos(2.1 * row * column)


def made(rows, shift):
    values = [[entry(r, c, shift) for c in range(DIM)] for r in range(rows)]
    return torch.tensor(values, dtype=torch.float64)


def show(name, loss, *leaves):
    loss.backward()
    print(f"{name} {loss.item():.12f}")
    for leaf in leaves:
        for row in leaf.grad.tolist():
            print("    [" + ", ".join(f"{v:.12f}" for v in row) + "],")


def main():
    torch.set_default_dtype(torch.float64)

    x = made(ROWS, 0.2).requires_grad_()
    loss = losses.MultiSimilarityLoss(alpha=2, beta=50, base=0.5)
    show("multi-similarity without mining", loss(x, LABELS), x)

    # Two margins, so that each of the two rules drops pairs with one of them that it keeps otherwise.
    for epsilon in [0.1, 0.5]:
        x = made(ROWS, 0.2).requires_grad_()
        mined = miners.MultiSimilarityMiner(epsilon=epsilon)(x, LABELS)
        kept = (len(mined[0]), len(mined[2]))
        all_pairs = sum(int(a == b) for a in LABELS for b in LABELS) - ROWS
        print(f"mined {kept} of {(all_pairs, ROWS * ROWS - ROWS - all_pairs)}")
        show(f"multi-similarity with margin {epsilon}", loss(x, LABELS, mined), x)

    x = made(ROWS, 0.2).requires_grad_()
    show("supcon", losses.SupConLoss(temperature=0.1)(x, LABELS), x)

    # Queries and items apart, one relevant item each: InfoNCE.
    queries = made(4, 0.2).requires_grad_()
    items = made(6, 1.1).requires_grad_()
    loss = losses.NTXentLoss(temperature=0.1)
    value = loss(queries, torch.arange(4), ref_emb=items, ref_labels=torch.arange(6))
    show("infonce", value, queries, items)

    x = made(ROWS, 0.2).requires_grad_()
    loss = losses.ProxyAnchorLoss(CLASSES, DIM, margin=0.1, alpha=32)
    loss.proxies.data = made(CLASSES, 1.1)
    show("proxy-anchor", loss(x, LABELS), x, loss.proxies)


if __name__ == "__main__":
    main()

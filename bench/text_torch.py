# SPDX-License-Identifier: Apache-2.0
"""The net of the text tutorial (docs/tutorials/text.ipynb) in PyTorch, in one process.

The same reviews, layers, batches and epochs. Prints the share of test reviews that it gets right,
and how many lines a user writes for it here and in the tutorial: lines of statements, except
those that draw the reviews, show or print something, or belong to the tutorial's regression.

    build/peers/bin/python bench/text_torch.py [SEED]
"""

import ast
import inspect
import json
import pathlib
import sys

NOTEBOOK = pathlib.Path(__file__).parents[1] / "docs/tutorials/text.ipynb"
DRAWING = ("import random", "GOOD", "THINGS =", "def drawn")
NOT_COUNTED = (*DRAWING, ".show(", "print(", "egression", "guessed")


def right_with(reviews, seed):
    """Trains on the first 3,200 reviews; returns the share of the others that it gets right."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    words = [review.split() for _, review, _ in reviews]
    places = {word: i for i, word in enumerate(sorted({w for row in words[:3200] for w in row}), 1)}
    length = max(map(len, words))
    rows = [[0] * (length - len(row)) + [places.get(word, 0) for word in row] for row in words]
    tokens, labels = torch.tensor(rows), torch.tensor([label for _, _, label in reviews])

    class Reviews(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(len(places) + 1, 16)
            self.lstm = nn.LSTM(16, 32, batch_first=True)
            self.scores = nn.Linear(32, 2)

        def forward(self, tokens):
            heard, _ = self.lstm(self.embedding(tokens))
            return self.scores(heard[:, -1])

    net = Reviews()
    optimizer = torch.optim.Adam(net.parameters(), 0.005)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
    for _ in range(10):
        for batch in torch.randperm(3200).split(32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(tokens[batch]), labels[batch]).backward()
            optimizer.step()
            rate.step()
    with torch.no_grad():
        guessed = net(tokens[3200:]).argmax(1)
    return (guessed == labels[3200:]).float().mean().item()


def segments(source, words, with_them):
    """The statements that contain one of these words, or none of them."""
    texts = (ast.get_source_segment(source, part) for part in ast.parse(source).body)
    return [text for text in texts if any(word in text for word in words) == with_them]


def lines(statements):
    """Lines that are not blank."""
    return sum(1 for text in statements for line in text.splitlines() if line.strip())


def main():
    """Trains, and counts."""
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    tutorial = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    scope = {}
    exec("\n".join(segments(tutorial, DRAWING, True)), scope)
    seed = int(sys.argv[1]) if sys.argv[1:] else 1
    print("right:", right_with([scope["drawn"](i) for i in range(4000)], seed))
    without = ("def right_with", '"""')  # the frame around the lines that a user writes
    body = [
        line
        for line in inspect.getsource(right_with).splitlines()
        if not any(word in line for word in without)
    ]
    print("lines here:", lines(body))
    print("lines of the tutorial:", lines(segments(tutorial, NOT_COUNTED, False)))


if __name__ == "__main__":
    main()

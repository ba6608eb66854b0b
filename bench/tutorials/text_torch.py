# SPDX-License-Identifier: Apache-2.0
"""The text tutorial with PyTorch, in one process: the same net, batch, epochs and rates.

`bench/tutorials/lines text` runs it.
"""

import torch
import tutorial
from torch import nn


def right_of(reviews):
    """The share of the test reviews that it gets right."""
    # begin
    torch.manual_seed(1)
    table = reviews.orderBy("id").toPandas()
    words = [review.split() for review in table.review]
    places = {word: i for i, word in enumerate(sorted({w for row in words[:3200] for w in row}), 1)}
    length = max(map(len, words))
    rows = [[0] * (length - len(row)) + [places.get(word, 0) for word in row] for row in words]
    tokens, labels = torch.tensor(rows), torch.tensor(table.label.to_numpy()).long()

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
        right = (net(tokens[3200:]).argmax(1) == labels[3200:]).float().mean().item()
    # end
    return right


if __name__ == "__main__":
    tutorial.run("text", right_of)

# SPDX-License-Identifier: Apache-2.0
"""Runs a notebook on the thin client as Jupyter does, and stops the cell whose fit has no end.

Prints as JSON what the cells and the progress bars show.
"""

import asyncio
import json
import time

import nbformat
from nbclient import NotebookClient

SECONDS = 120
CELLS = [
    "from connect_nets import net\n"
    "from pyspark.sql import SparkSession\n"
    "from cafetiere.spark import RunReport\n"
    "spark = SparkSession.builder.getOrCreate()\n"
    "endless, rows = net(spark, maxIter=10**9)",
    "endless.fit(rows)",
    "(run,) = RunReport(owner=endless.uid).transform(spark.range(1)).collect()\n"
    "print(run.state, 0 < run.step < run.steps)",
    "estimator, rows = net(spark, maxIter=2000)\n"
    "model = estimator.fit(rows)\n"
    "print(model.summary.steps)",
    "model.summary",
]
ENDLESS = 1


async def main():
    """Runs the cells one after the other."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    client = NotebookClient(notebook, timeout=SECONDS, allow_errors=True)
    async with client.async_setup_kernel():
        for index, cell in enumerate(notebook.cells):
            running = asyncio.create_task(client.async_execute_cell(cell, index))
            if index == ENDLESS:
                await shown(client, "loss=")
                await client.km.interrupt_kernel()
            await running
    outputs = [cell.outputs for cell in notebook.cells]
    print(json.dumps({"outputs": outputs, "bars": bars(client)}), flush=True)


async def shown(client, word):
    """Waits until a progress bar shows this word."""
    end = time.monotonic() + SECONDS
    while not any(word in text for text in bars(client)):
        assert time.monotonic() < end, f"no bar shows {word}: {bars(client)}"
        await asyncio.sleep(0.1)


def bars(client):
    """The texts beside the progress bars."""
    return [state["value"] for state in client.widget_state.values() if "placeholder" in state]


if __name__ == "__main__":
    asyncio.run(main())

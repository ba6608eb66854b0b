# SPDX-License-Identifier: Apache-2.0
"""A tutorial's statements, which of them are its job, and what its peers need.

    .venv/bin/python bench/tutorials/tutorial.py table

runs a tutorial's job alone, as `lines` does, and prints its figure and seconds. The data is what
the notebook's own statements make, for the peers too. The job is those statements after them that
the figure depends on: what only prints or shows something, or belongs to another part of the
tutorial, is neither run nor counted.
"""

import ast
import json
import os
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "tutorials"
# Each tutorial: the tables that all sides begin with, the variable of its figure, and the measure.
TUTORIALS = {
    "table": (("train", "test"), "auc", "AUC"),
    "images": (("train", "test"), "right", "accuracy"),
    "text": (("reviews",), "right", "accuracy"),
    "finetune": (("train", "test"), "right", "accuracy"),
    "keys": (("train", "test", "broken"), "error_of_each", "RMSE"),
}
IMPORTS = (ast.Import, ast.ImportFrom)


def code(name):
    """The code of a tutorial, all cells in one."""
    cells = json.loads((FOLDER / f"{name}.ipynb").read_text())["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def made(statement):
    """The names that a statement assigns, or changes an attribute of, and the files it opens."""
    if isinstance(statement, ast.FunctionDef):
        return {statement.name}
    if isinstance(statement, ast.Assign):
        return {part.id for t in statement.targets for part in ast.walk(t) if hasattr(part, "id")}
    if isinstance(statement, ast.With):
        return {part.value for part in ast.walk(statement) if isinstance(part, ast.Constant)}
    return set()


def used(statement):
    """The names that a statement reads, and its constants, which may be names of files."""
    parts = list(ast.walk(statement))
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    return names | {part.value for part in parts if isinstance(part, ast.Constant)}


def needed(statements, names):
    """The statements, without imports, that these names depend on, in their order."""
    wanted, found = set(names), []
    for statement in reversed(statements):
        if not isinstance(statement, IMPORTS) and made(statement) & wanted:
            wanted |= used(statement)
            found.insert(0, statement)
    return found


def parts(name):
    """A tutorial's imports, the statements that make its data, and those of its job."""
    statements = ast.parse(code(name)).body
    tables, figure, _ = TUTORIALS[name]
    data = needed(statements, tables)
    job = [statement for statement in needed(statements, [figure]) if statement not in data]
    return [part for part in statements if isinstance(part, IMPORTS)], data, job


def run_statements(statements, scope):
    """Runs statements of a notebook."""
    exec(compile(ast.Module(statements, []), "notebook", "exec"), scope)


def scope_with_data(name):
    """The variables of a notebook whose imports and data are there; the tables are in memory."""
    imports, data, _ = parts(name)
    scope = {"__name__": "__main__"}
    run_statements([*imports, *data], scope)
    for table in TUTORIALS[name][0]:
        scope[table].cache().count()
    return scope


def run(name, job=None):
    """Makes the data, then measures a peer's job, a function of the tables, or the tutorial's."""
    tables, figure, _ = TUTORIALS[name]
    with tempfile.TemporaryDirectory() as folder:
        for file in FOLDER.iterdir():
            os.symlink(file.resolve(), pathlib.Path(folder, file.name))
        os.chdir(folder)
        scope = scope_with_data(name)
        begun = time.perf_counter()
        if job:
            value = job(*(scope[table] for table in tables))
        else:
            run_statements(parts(name)[2], scope)
            value = scope[figure]
        seconds = time.perf_counter() - begun
        scope["spark"].stop()
        os.chdir(ROOT)
    print(json.dumps({"figure": round(float(value), 4), "seconds": round(seconds, 2)}))


if __name__ == "__main__":
    run(sys.argv[1])

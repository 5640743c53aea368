"""Makes the page of the experiments (README.md) of the scores in `figures`: every table, every figure and every verdict in it.

    python3 pipelines/experiments/page.py                    # write the page
    python3 pipelines/experiments/page.py --check            # fail if it is not what the scores make of it
    python3 pipelines/experiments/page.py --take FOLDER      # take the scores of a run first
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import figures
from claims import adult, gorla, loukides, sun, tinabo

PAGE = Path(__file__).parent / "README.md"


def page() -> str:
    parts = [(Path(__file__).parent / "head.md").read_text().rstrip()]
    parts += [part.section().rstrip() for part in (adult, loukides, sun, tinabo, gorla)]
    parts.append((Path(__file__).parent / "tail.md").read_text().rstrip())
    return "\n\n".join(parts) + "\n"


def main(arguments: list) -> None:
    if arguments[:1] == ["--take"]:
        figures.take(Path(arguments[1]))
    made = page()
    if arguments[:1] == ["--check"]:
        if PAGE.read_text() != made:
            sys.exit(f"{PAGE.name} is not what the scores make of it: run pipelines/experiments/page.py")
    else:
        PAGE.write_text(made)


main(sys.argv[1:])

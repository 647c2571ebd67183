"""`dpsparse lab`, or `python -m lab` in the folder experiments."""

from lab.command import lab

if __name__ == "__main__":
    lab(prog_name="lab")

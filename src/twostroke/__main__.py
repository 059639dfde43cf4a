"""`python -m twostroke` is `twostroke`."""

from twostroke.cli.main import main

if __name__ == "__main__":
    main()

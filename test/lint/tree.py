"""What the lint tests share: the root of the tree and the files under version control or about to be."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def files(*suffixes):
    """Paths relative to ROOT, sorted, of files that git tracks or does not ignore, with one of the suffixes."""
    listing = subprocess.run(['git', '-C', ROOT, 'ls-files', '-z', '--cached', '--others', '--exclude-standard'],
                             check=True, capture_output=True, text=True).stdout
    return sorted(name for name in listing.split('\0') if name.endswith(suffixes) and (ROOT / name).exists())


def finish(name, problems, good):
    """Prints the problems, or what is good, and returns the exit status."""
    print('\n'.join(problems) if problems else f'{name}: {good}')
    return 1 if problems else 0

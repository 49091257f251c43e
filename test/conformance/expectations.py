"""The list of cases that are expected to fail, each with its reason, checked both ways."""
import pathlib


class Expectations:
    """A file of lines `name: reason`; `#` begins a comment line."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.reasons = {}
        for number, line in enumerate(self.path.read_text().splitlines() if self.path.exists() else [], 1):
            if line.strip() and not line.startswith('#'):
                name, _, reason = line.partition(': ')
                if not reason.strip() or name in self.reasons:
                    raise SystemExit(f'{self.path}:{number}: expected `name: reason`, each name once')
                self.reasons[name] = reason.strip()

    def surprises(self, failures, ran):
        """Lines for each case of `ran` that does not end as listed. failures: {name: why}."""
        for name, why in failures.items():
            if name not in self.reasons:
                yield f'FAILED {name}: {why}'
        for name in ran:
            if name in self.reasons and name not in failures:
                yield f'PASSED {name}, which {self.path.name} lists as failing ({self.reasons[name]}); remove that line'

    def unknown(self, names):
        for name in self.reasons.keys() - set(names):
            yield f'UNKNOWN {name}: {self.path.name} lists it, but there is no such case; remove that line'

    def write(self, failures, ran, header):
        """Makes the list agree with what happened; reasons that stand stay."""
        kept = {name: reason for name, reason in self.reasons.items() if name not in ran}
        kept.update({name: self.reasons.get(name, why) for name, why in failures.items()})
        lines = [f'# {line}' for line in header.splitlines()] + [f'{name}: {kept[name]}' for name in sorted(kept)]
        self.path.write_text('\n'.join(lines) + '\n')

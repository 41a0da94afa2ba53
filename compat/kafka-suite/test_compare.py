#!/usr/bin/env python3
"""Tests of `compare`: what lets a run of Kafka's own tests pass, and what does not."""
import contextlib
import importlib.machinery
import importlib.util
import io
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).parent
LOADER = importlib.machinery.SourceFileLoader('compare', str(HERE / 'compare'))
COMPARE = importlib.util.module_from_spec(importlib.util.spec_from_loader('compare', LOADER))
LOADER.exec_module(COMPARE)

KNOWN = [('a.A#one', 'topics', 'passed'), ('a.A#two', 'acl', 'failed', 'needs TLS, not built yet')]
SOUND = [('a.A#one', 'passed'), ('a.A#two', 'failed')]
ASKED = ['a.A#one', 'a.A#two']


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def compare(self, run=SOUND, known=KNOWN, asked=ASKED, record=False):
        """The exit code and what was printed."""
        lists = {
            'run': [(test, result, '1.0', '1', '0', '0', '1', 'why') for test, result in run],
            'known': known,
            'asked': [(test, 'area') for test in asked],
        }
        for name, rows in lists.items():
            text = '\n'.join('\t'.join(row) for row in rows)
            (self.folder / name).write_text('# test\n' + text + '\n')
        paths = [str(self.folder / name) for name in lists]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = COMPARE.main(paths + (['--record'] if record else []))
        return code, out.getvalue()

    def assert_refused(self, sentence, **lists):
        code, told = self.compare(**lists)
        self.assertEqual(code, 1, told)
        self.assertIn(sentence, told)

    def test_a_run_that_ends_as_it_is_known_to_passes(self):
        self.assertEqual(self.compare(), (0, '1 of 2 passed, 1 as excepted, 0 not as known\n'))

    def test_a_test_that_is_not_known_has_to_pass(self):
        asked = ASKED + ['b.B#new']
        self.assertEqual(self.compare(run=SOUND + [('b.B#new', 'passed')], asked=asked)[0], 0)
        self.assert_refused('b.B#new failed: why', run=SOUND + [('b.B#new', 'failed')], asked=asked)

    def test_a_new_failure_is_told(self):
        run = [('a.A#one', 'failed'), SOUND[1]]
        self.assert_refused('a.A#one failed: why', run=run)

    def test_a_row_of_what_passes_by_now_is_told(self):
        run = [SOUND[0], ('a.A#two', 'passed')]
        self.assert_refused('a.A#two passed, but is known to fail', run=run)

    def test_a_skipped_test_of_the_list_is_told_whatever_is_known_of_it(self):
        self.assert_refused('a.A#one was skipped', run=[('a.A#one', 'skipped'), SOUND[1]])
        self.assert_refused('a.A#two was skipped', run=[SOUND[0], ('a.A#two', 'skipped')])
        known = [KNOWN[0], ('a.A#two', 'acl', 'skipped', 'only combined nodes')]
        run = [SOUND[0], ('a.A#two', 'skipped')]
        self.assert_refused("passed or failed, not 'skipped'", run=run, known=known)

    def test_a_test_of_the_list_that_did_not_run_is_told(self):
        self.assert_refused('a.A#two did not run', run=SOUND[:1])
        self.assert_refused('a.A#one did not run', run=[])
        self.assert_refused('a.A#one did not run', run=[('a.A#?', 'failed')])

    def test_a_failure_needs_a_reason_of_words(self):
        for reason in ['', '?', '??', '-', 'TODO', '12 34']:
            known = [KNOWN[0], ('a.A#two', 'acl', 'failed', reason)]
            self.assert_refused('no reason in words', known=known)
            # Also when the run was not asked for that test.
            self.assert_refused('no reason in words', known=known, run=SOUND[:1], asked=ASKED[:1])
        self.assert_refused('no reason in words', known=[KNOWN[0], ('a.A#two', 'acl', 'failed')])

    def test_the_list_itself_has_to_make_sense(self):
        self.assert_refused('is there twice', known=KNOWN + KNOWN[:1])
        self.assert_refused("not 'not run'", known=[('a.A#one', 'topics', 'not run', '?'), KNOWN[1]])
        known = [('a.A#one', 'topics', 'passed', 'it once failed'), KNOWN[1]]
        self.assert_refused('has a reason why not', known=known)
        self.assert_refused('names no test', asked=[])

    def test_of_a_class_something_has_to_run(self):
        run = [('b.B#one', 'passed'), ('b.B#combined', 'skipped')]
        self.assertEqual(self.compare(run=run, asked=['b.B'])[0], 0)
        self.assert_refused('no method of it ran', run=run[1:], asked=['b.B'])
        self.assert_refused('no method of it ran', run=run, asked=['b.B', 'c.C'])

    def test_what_is_recorded_asks_for_reasons_and_fails_until_it_has_them(self):
        run = [('a.A#one', 'failed'), ('a.A#two', 'failed')]
        asked = ASKED + ['b.B#gone']
        self.assertEqual(self.compare(run=run, asked=asked, record=True), (0, ''))
        written = [tuple(row) for row in COMPARE.rows(self.folder / 'known')]
        self.assertEqual(written, [
            ('a.A#one', 'area', 'failed', '?'),
            ('a.A#two', 'area', 'failed', 'needs TLS, not built yet'),
            ('b.B#gone', 'area', 'not run', '?'),
        ])
        self.assert_refused("in words, but '?'", run=run, known=written, asked=asked)

    def test_the_list_of_this_folder_makes_sense(self):
        known = COMPARE.rows(HERE / 'results.tsv')
        self.assertEqual(list(COMPARE.faults_of(known, 'results.tsv')), [])
        handed = {row[0] for row in COMPARE.rows(HERE / 'handed.tsv')}
        self.assertEqual({row[0] for row in known}, handed)
        quick = {row[0] for row in COMPARE.rows(HERE / 'quick.tsv')}
        self.assertEqual(quick - handed, set())


if __name__ == '__main__':
    unittest.main()

"""Values that are computed once, and no lock that a forked child would wait for."""

import os
import threading
import warnings

from reduset._engine import cached_property


class Computed:
    def __init__(self, wait=None):
        self.times, self.begun, self.wait = 0, threading.Event(), wait

    @cached_property
    def value(self):
        """What is computed."""
        self.times += 1
        self.begun.set()
        if self.wait is not None:
            self.wait.wait(60)
        return object()


def test_a_value_is_computed_once_and_kept():
    one = Computed()
    assert one.value is one.value
    assert one.times == 1
    assert Computed.value.__doc__ == "What is computed."
    assert isinstance(Computed.value, cached_property)


def test_a_child_that_is_forked_while_another_thread_computes_does_not_wait():
    wait = threading.Event()
    slow = Computed(wait)
    other = threading.Thread(target=lambda: slow.value)
    other.start()
    assert slow.begun.wait(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from Python 3.12 on: what it warns of is what is tested
        child = os.fork()
    if child == 0:
        os._exit(0 if Computed().value is not None else 1)
    wait.set()
    other.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

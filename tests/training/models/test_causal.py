"""Models without a matrix in a recurrence: what a step sees, and what they share."""
import pytest
import torch

from circulant.training.models.causal import BODIES, StepsClassifier, StepsLabeller


@pytest.mark.parametrize("front", [0, 6])
@pytest.mark.parametrize("kind", BODIES)
def test_a_step_of_a_labeller_sees_all_before_it_and_none_after_it(kind, front):
    torch.manual_seed(5)
    model, x = StepsLabeller(kind, 4, 8, 3, 2, front=front).double(), torch.rand(2, 9, 4, dtype=torch.float64)
    changed = x.clone()
    changed[:, 6] += 1
    before, after = model(x), model(changed)
    assert before.shape == (2, 9, 3)
    assert torch.equal(before[:, :6], after[:, :6]), "it is causal"
    assert (before[:, 6:] != after[:, 6:]).any(-1).all(), "the change reaches all steps behind it"
    torch.testing.assert_close(model(x[:, :6]), before[:, :6])


@pytest.mark.parametrize("kind", BODIES)
def test_a_classifier_is_the_mean_of_a_labeller(kind):
    torch.manual_seed(5)
    labeller, x = StepsLabeller(kind, 4, 8, 3, 2), torch.rand(2, 9, 4)
    classifier = StepsClassifier(kind, 4, 8, 3, 2)
    classifier.load_state_dict(labeller.state_dict())
    torch.testing.assert_close(classifier(x), labeller(x).mean(1))

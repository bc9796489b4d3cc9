"""The product of two streams, value by value, with a multiplier for each value that is taken in a cycle."""


from circulant.hw.array.plans import ValuesPlan
from circulant.hw.kinds.elementwise import PlacesLayer
from circulant.hw.plan.stream_plan import with_one_for_each
from circulant.hw.unit import Site, unit
from circulant.sim.kinds.product import Product


@unit.register
def _(layer: Product, plan: ValuesPlan, site: Site) -> PlacesLayer:
    return PlacesLayer(layer, k=plan.elements, beside=site.beside)


with_one_for_each(Product)

/* The shared library has no code of its own: it is the modules behind the C interface. */
#include "cafetiere/c_api.h"

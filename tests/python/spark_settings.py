# SPDX-License-Identifier: Apache-2.0
"""Settings of Spark for the programs that tests start."""

import os


def java_options(**settings):
    """JDK_JAVA_OPTIONS with these settings of Spark, `_` for each dot, as system properties.

    They do what spark-defaults.conf would, whose folder JVMs with an archive of Spark's classes
    (tools/class_archive) must not have on their class path. The tests are too short to earn back
    what the second compiler costs.
    """
    properties = [f"-D{name.replace('_', '.')}={value}" for name, value in settings.items()]
    given = os.environ.get("JDK_JAVA_OPTIONS", "")
    return " ".join([given, "-XX:TieredStopAtLevel=1", *properties]).strip()

// SPDX-License-Identifier: Apache-2.0
package org.acl.deepspark.nn.driver

/** Downpour on MNIST as text, ten updates at a time: `AsyncMnistTest SOLVER NET [TRAIN [TEST]]`. The net gets
  * pixels from 0 to 1.
  */
object AsyncMnistTest {
  def main(args: Array[String]): Unit = Program.run("AsyncMnistTest", args, "") { program =>
    val train = Program.scaled(program.images("text", 0, "/data/MNIST/mnist_train.txt"))
    val test = Program.scaled(program.images("text", 1, "/data/MNIST/mnist_test.txt"))
    program.tellAccuracy(program.downpour(train, 10), test)
  }
}

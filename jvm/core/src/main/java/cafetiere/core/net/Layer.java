// SPDX-License-Identifier: Apache-2.0
package cafetiere.core.net;

import java.util.List;

/**
 * A layer of a net.
 *
 * @param bottoms numbers of the blobs that it reads, for {@link Net#blob(int)}
 * @param tops numbers of those that it writes; of a layer in place the same
 * @param params numbers of its parameters, for {@link Net#param(int)}
 */
public record Layer(
    String name, String type, List<Integer> bottoms, List<Integer> tops, List<Integer> params) {}
